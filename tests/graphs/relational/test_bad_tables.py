import pytest

from idgnn.graphs.files.text import BadRows
from idgnn.graphs.relational.columns import features, find_codes
from idgnn.graphs.relational.graph import load_tables
from idgnn.graphs.relational.task_tables import TaskColumns, read_queries
from tests.graphs.relational.small_tables import SCHEMA, write_tables


def test_all_bad_rows_are_listed_with_file_and_line(tmp_path):
    folder = write_tables(
        tmp_path,
        drivers="id,points\na,1\nb,2\na,3\n,4\n",
        races="id,circuit,date\n1,x,2000-05-01\n2,q,2001-05-01\n3,x,soon\n",
        results="race,driver\n1,a\n9,b\n,a\n2,k\n",
    )
    with pytest.raises(BadRows) as error:
        load_tables(folder)
    assert [str(row).removeprefix(f"{folder}/") for row in error.value.rows] == [
        "drivers.csv:4: key 'id' is 'a', as in line 2",
        "drivers.csv:5: key 'id' is empty",
        "races.csv:3: foreign key 'circuit' is 'q', which 'circuits' does not have",
        "races.csv:4: time 'date' is 'soon', expected a date or a time such as 2010-01-31 or 2010-01-31 13:00:00",
        "results.csv:3: foreign key 'race' is '9', which 'races' does not have",
        "results.csv:4: 'race' is empty, and gives the time",
        "results.csv:5: foreign key 'driver' is 'k', which 'drivers' does not have",
    ]


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ('[drivers]\nkey = "id"', "[drivers]", "table 'drivers' has no key"),
        ('[drivers]\nkey = "id"', '[drivers]\nkey = ""', "refers to 'drivers', which has no key"),
        (
            'key = "id"\n\n[circuits]',
            'key = "number"\n\n[circuits]',
            "names 'number', but .*drivers.csv has the columns",
        ),
        (
            'time = "date"',
            'time = "date"\nignore = ["url"]',
            "names 'url', but .*races.csv has the columns id, circuit",
        ),
        ('driver = "drivers"', 'driver = "pilots"', "refers to 'pilots', which is none of the tables"),
        ('"race.date"', '"cup.date"', "'cup' is none of its foreign keys"),
        ('"race.date"', '"race.day"', "but the time of table 'races' is 'date'"),
        ("[circuits]", "[tracks]", "refers to 'circuits', which is none of the tables"),
        ("[drivers]", "[drivers]\nkeys = 1", "has 'keys', expected some of"),
        ('time = "date"', "time = 3", "time of table 'races' is 3, expected a text"),
        ("[drivers]", "[drivers", "is not a schema in TOML"),
    ],
)
def test_a_schema_that_does_not_fit_is_refused_in_a_sentence(tmp_path, old, new, message):
    assert old in SCHEMA
    with pytest.raises(ValueError, match=message):
        load_tables(write_tables(tmp_path, SCHEMA.replace(old, new)))


def test_a_folder_without_schema_or_table_is_refused(tmp_path):
    with pytest.raises(ValueError, match="there is no folder"):
        load_tables(tmp_path / "nowhere")
    with pytest.raises(ValueError, match="there is no schema file"):
        load_tables(tmp_path)
    (write_tables(tmp_path) / "races.csv").unlink()
    with pytest.raises(ValueError, match=r"has no file for table 'races', expected races\.csv"):
        load_tables(tmp_path)


def test_new_rows_of_another_kind_are_listed(tmp_path):
    codes = find_codes(load_tables(write_tables(tmp_path)))
    tables = load_tables(write_tables(tmp_path, circuits="id,length\nx,5\ny,long\n"))
    with pytest.raises(BadRows, match=r"circuits.csv:3: column 'length' is 'long', expected a number"):
        features(tables["circuits"], codes["circuits"])
    with pytest.raises(ValueError, match="lacks the columns 'length', which the network was trained with"):
        features(load_tables(write_tables(tmp_path, circuits="id\nx\ny\n"))["circuits"], codes["circuits"])


def test_queries_about_unknown_entities_are_listed(tmp_path):
    tables = load_tables(write_tables(tmp_path))
    path = tmp_path / "task.csv"
    path.write_text(
        'date,driver,circuits\n2001-01-01,a,"[""x""]"\n2001-01-01,k,"[""y""]"\nnow,b,"[""q""]"\n2001-01-01,b,x\n'
    )
    columns = TaskColumns("driver", "drivers", "date", "circuits", "circuits")
    with pytest.raises(BadRows) as error:
        read_queries(path, columns, tables)
    assert [row.line for row in error.value.rows] == [3, 4, 5]
    with pytest.raises(ValueError, match="but the task names 'target'"):
        read_queries(path, TaskColumns("driver", "drivers", "date", "target"), tables)
    with pytest.raises(ValueError, match="about table 'pilots', which is none of drivers"):
        read_queries(path, TaskColumns("driver", "pilots", "date", "circuits"), tables)
