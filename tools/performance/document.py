"""docs/performance.md and the like from what was measured: the template, with a text for each section
in it."""

import json

from machine import calculated, sentence
from units import Verdict


def saved(section, folder):
    """What is known of a section: what was measured last, or why nothing was."""
    file = folder / f"{section.name}.json"
    if not file.exists():
        return {"not_measured": "it has not been run yet"}
    return json.loads(file.read_text())


def rounded(row):
    return {key: float(f"{value:.6g}") if isinstance(value, float) else value
            for key, value in row.items()}


def save(section, folder, result):
    """A row in a line, of figures that mean something: small, and easily compared."""
    fields = [f"{json.dumps(key)}: {json.dumps(value)}" for key, value in result.items()
              if key != "rows"]
    if "rows" in result:
        rows = ",\n  ".join(json.dumps(rounded(row)) for row in result["rows"])
        fields.append(f'"rows": [\n  {rows}\n]')
    folder.mkdir(parents=True, exist_ok=True)
    (folder / f"{section.name}.json").write_text("{\n" + ",\n".join(fields) + "\n}\n")


def text_of(section, result, folder):
    """Commands, machine, table and plot, which is in `folder`."""
    if "not_measured" in result:
        return f"**Not measured:** {result['not_measured']}.\n"
    rows = result["rows"]
    quick = " A quick run: fewer sizes, and fewer calls of each." if result["quick"] else ""
    return ("```\n" + "\n".join(result["commands"]) + "\n```\n\n"
            f"{origin(section)(result['machine'])}{quick}\n\n"
            f"{section.tables(rows)}![{section.title}]({folder.name}/{section.name}.svg)\n")


def origin(section):
    return calculated if getattr(section, "calculated", False) else sentence


def summary_line(section, result):
    if "not_measured" in result:
        return f"| {section.title} | not measured | | |\n"
    verdicts = section.verdicts(result["rows"])
    if not verdicts:
        return f"| {section.title} | no bars | | |\n"
    met, beyond, missed = (verdicts.count(one) for one in Verdict)
    return f"| {section.title} | {met} of {len(verdicts)} | {beyond or '-'} | {missed or '-'} |\n"


def summary(sections, results):
    return "| | bars met | out of reach here | missed |\n| --- | --: | --: | --: |\n" + "".join(
        summary_line(section, results[section.name]) for section in sections)


def render(sections, template, folder):
    """Writes the document beside `folder`, which has the results, and the plots into it."""
    results = {section.name: saved(section, folder) for section in sections}
    text = template.replace("{{summary}}\n", summary(sections, results))
    for section in sections:
        result = results[section.name]
        text = text.replace(f"{{{{{section.name}.title}}}}", f"{section.name}: {section.title}")
        text = text.replace(f"{{{{{section.name}}}}}\n", text_of(section, result, folder))
        plot = folder / f"{section.name}.svg"
        if "rows" in result:
            plot.write_text(section.chart(result["rows"]))
        else:
            plot.unlink(missing_ok=True)
    folder.with_suffix(".md").write_text(text)
