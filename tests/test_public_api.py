import subprocess
import sys
from importlib.metadata import version

import pytest

import idgnn


@pytest.mark.parametrize("name", idgnn.__all__)
def test_every_public_name_resolves(name):
    assert getattr(idgnn, name) is not None


def test_every_public_name_has_a_module():
    assert set(idgnn.__all__) == {*idgnn._MODULE_OF, "__version__"}


def test_dir_lists_the_public_names():
    assert set(dir(idgnn)) == set(idgnn.__all__)


def test_version_is_that_of_the_installed_package():
    assert idgnn.__version__ == version("idgnn")


def test_unknown_name_is_an_attribute_error_that_lists_the_names():
    with pytest.raises(AttributeError, match=r"'cycle_count'; its public names are: .*cycle_counts"):
        idgnn.cycle_count  # noqa: B018


def test_what_goes_wrong_inside_of_an_import_is_said(tmp_path):
    """Python turns an AttributeError there into a name that does not exist."""
    (tmp_path / "safetensors").mkdir()
    (tmp_path / "safetensors" / "__init__.py").write_text("raise AttributeError('too old')")
    done = subprocess.run(
        [sys.executable, "-c", "from idgnn import IDGNN"], capture_output=True, text=True, cwd=tmp_path, check=False
    )
    assert "cannot be imported: too old" in done.stderr


def test_import_does_not_import_torch():
    program = "import sys, idgnn; print(*sys.modules)"
    modules = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True).stdout.split()
    assert "idgnn" in modules
    assert not {"torch", "torch_geometric", "networkx", "matplotlib"} & set(modules)
