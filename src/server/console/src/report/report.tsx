// Report: the figures of an evaluation, its questions, and the ripple of each.
import { useEffect, useState } from "preact/hooks";
import { ProblemView } from "../problem";
import { change, place } from "../route";
import { type Failure, failureOf, getFile } from "../service";
import { count, plural, share } from "../words";
import { filtered, outcomeOf, STEPS } from "./expected";
import { ByCategory, RecallAgainstTokens } from "./figures";
import type { QuestionLine, ReportFigures } from "./forms";
import { Question } from "./question";

/** Questions that are shown at once. */
const PAGE = 100;

export function Report() {
  const [report, setReport] = useState<ReportFigures>();
  const [failure, setFailure] = useState<Failure>();
  useEffect(() => {
    const stop = new AbortController();
    getFile<ReportFigures>("report.json", stop.signal).then(setReport, (thrown) => setFailure(failureOf(thrown)));
    return () => stop.abort();
  }, []);
  const { question } = place.value.parameters;
  if (failure) return <ProblemView failure={failure} />;
  if (!report) return <p role="status">Opening the report …</p>;
  return question ? <Question key={question} report={report} file={question} /> : <Overview report={report} />;
}

function Overview({ report }: { report: ReportFigures }) {
  const { overall, found_means } = report;
  const facts = [
    plural(report.questions.length, "question"),
    `profile ${report.profile}`,
    overall.recollection.tokens && `${count(Math.round(overall.recollection.tokens))} tokens a question`,
  ].filter(Boolean);
  return (
    <section class="report">
      <h1>
        {report.dataset}: {report.file}
      </h1>
      <p class="verdict">
        {facts.map((fact) => (
          <span key={fact}>{fact}</span>
        ))}
      </p>
      <p class="quiet">
        A turn of evidence is found where{" "}
        {found_means === "whole"
          ? "every sentence of it with a content word is quoted."
          : "at least six of its tokens are quoted, or all of a shorter one."}
      </p>
      <div class="plots">
        <RecallAgainstTokens retrievers={report.retrievers} />
        <ByCategory report={report} />
      </div>
      <Questions report={report} />
    </section>
  );
}

const SHOWN = { missed: "Missed", found: "Found", unasked: "None expected" };

function Questions({ report }: { report: ReportFigures }) {
  const { show, category, lost } = place.value.parameters;
  const [most, setMost] = useState(PAGE);
  const lines = filtered(report.questions, { show, category, lost });
  useEffect(() => setMost(PAGE), [show, category, lost]);
  const steps = Object.entries(STEPS).filter(([step]) =>
    report.questions.some((line) => line.lost_at.some((at) => at === step)),
  );
  return (
    <section aria-labelledby="questions">
      <h2 id="questions">Questions</h2>
      <div class="filters">
        <Choice
          name="Show"
          value={show}
          all="All"
          choices={Object.entries(SHOWN)}
          choose={(show) => change({ show }, true)}
        />
        <Choice
          name="Category"
          value={category}
          all="All"
          choices={report.categories.map(({ name }) => [name, name])}
          choose={(category) => change({ category }, true)}
        />
        <Choice name="Lost at" value={lost} all="Any step" choices={steps} choose={(lost) => change({ lost }, true)} />
        <span role="status">{plural(lines.length, "question")}</span>
      </div>
      <table class="asked">
        <thead>
          <tr>
            <th scope="col">Question</th>
            <th scope="col">Evidence found</th>
            <th scope="col" class="number extra">
              By the first hop
            </th>
            <th scope="col" class="extra">
              Lost at
            </th>
            <th scope="col" class="number extra">
              Tokens
            </th>
          </tr>
        </thead>
        <tbody>
          {lines.slice(0, most).map((line) => (
            <Line key={line.file} line={line} />
          ))}
        </tbody>
      </table>
      {lines.length === 0 && <p class="empty">No question is so.</p>}
      {lines.length > most && (
        <button type="button" class="all" onClick={() => setMost(most + PAGE)}>
          {count(Math.min(PAGE, lines.length - most))} more
        </button>
      )}
    </section>
  );
}

interface ChoiceProps {
  name: string;
  value: string | undefined;
  all: string;
  choices: [string, string][];
  choose: (value: string | undefined) => void;
}

function Choice({ name, value, all, choices, choose }: ChoiceProps) {
  return (
    <label>
      {name}{" "}
      <select value={value ?? ""} onChange={(event) => choose(event.currentTarget.value || undefined)}>
        <option value="">{all}</option>
        {choices.map(([value, text]) => (
          <option key={value} value={value}>
            {text}
          </option>
        ))}
      </select>
    </label>
  );
}

function Line({ line }: { line: QuestionLine }) {
  const outcome = outcomeOf(line);
  return (
    <tr>
      <th scope="row">
        <button type="button" class="link words" onClick={() => change({ question: line.file, unit: undefined })}>
          {line.text}
        </button>
        <small>
          {line.id} · {line.category}
        </small>
      </th>
      <td>
        {outcome === "unasked" ? (
          <span class="quiet">none expected</span>
        ) : (
          <span class={outcome === "found" ? "good" : "bad"}>
            {outcome === "found" ? "✓" : "✗"} {line.found} of {line.evidence}
          </span>
        )}
        {line.facts !== undefined && line.facts !== null && <small>facts {share(line.facts)}</small>}
      </td>
      <td class="number extra">{line.found_by_first_hop ?? "–"}</td>
      <td class="extra">{line.lost_at.map((at) => STEPS[at]).join(", ")}</td>
      <td class="number extra">{count(line.tokens)}</td>
    </tr>
  );
}
