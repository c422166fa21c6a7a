"""The prompt in a terminal, with a real Spark: started once, and everything tried on it."""

from pathlib import Path

from cli.test_surroundings import short_lived
from fast.cli.conftest import command
from kit.terminal import CTRL_C, ENTER, TAB, Terminal

from headrace.project.new_project import init_project

ENDLESS = "SELECT count(*) FROM range(0, 1000000000000, 1, 2) WHERE rand() < 2;"
PROMPT = "headrace>"


def test_a_session_at_the_prompt(tmp_path: Path) -> None:
    project = init_project(tmp_path / "shop").root
    environment = {key: value for key, value in short_lived().items() if key not in ("COLUMNS", "LINES")}
    environment["PAGER"] = "sed 's/^/page: /'"
    with Terminal(command("sql"), project, environment) as terminal:
        run = lambda text: (terminal.wait_for(PROMPT), terminal.type(text + ENTER))  # noqa: E731
        run("status;")
        terminal.wait_for("There are no stream tables yet")
        run("\\timing")
        terminal.wait_for("Timing is on.")
        run(
            "CREATE NAMESPACE shop; CREATE TABLE shop.orders USING iceberg AS "
            "SELECT id, IF(id < 2, 'EU', 'US') AS region FROM range(5);"
        )
        terminal.wait_for("Starting Spark")
        terminal.wait_for("Time: ")
        terminal.wait_for("Time: ")
        run('create shop.s "SELECT region, count(*) AS n FROM shop.orders GROUP BY region";')
        terminal.wait_for("first load")
        run("verify shop.s")
        assert "yes" in terminal.wait_for("Time: ")
        run("\\x")
        run("SELECT * FROM shop.s ORDER BY region LIMIT 1;")
        terminal.wait_for("row 1\n  region  EU\n  n       2\n1 row\n")
        run("\\x off")
        run("\\o out.txt")
        run("SELECT n FROM shop.s ORDER BY n; status")
        terminal.wait_for("Time: ")
        run("\\o")
        terminal.wait_for("out.txt is written")
        run(ENDLESS)
        terminal.wait_for("Working")
        terminal.type(CTRL_C)
        terminal.wait_for("Interrupted. Nothing of what was under way has been published.")
        run("SELECT 40 + 2 AS answer;")
        terminal.wait_for("answer \n")
        terminal.wait_for(" 42 \n")
        run("SELECT id FROM range(150);")
        terminal.wait_for("page: 100 rows shown; there are more (\\pset limit N)")
        run("CREATE TEMPORARY VIEW v AS SELECT 7 AS seven;")
        terminal.wait_for("Time: ")
        terminal.wait_for(PROMPT)
        terminal.type("SELECT * FROM v WHERE sev" + TAB)
        terminal.wait_for("sev")
        terminal.wait_for("en")
        terminal.type(" = 7;" + ENTER)
        terminal.wait_for("1 row\n")
        run("exit")
        assert terminal.process.wait(60) == 0
    everything = terminal.everything()
    assert "incubator" not in everything
    assert "Traceback" not in everything
    written = (project / "out.txt").read_text()
    assert written.split()[:6] == ["n", "─", "2", "3", "2", "rows"]
    assert "ACTIVE" in written, "what verbs print is a result, too"
