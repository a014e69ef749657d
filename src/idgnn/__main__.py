"""`python -m idgnn`: the command line, for `torchrun -m idgnn` too."""

from idgnn.cli.main import main

if __name__ == "__main__":
    main()
