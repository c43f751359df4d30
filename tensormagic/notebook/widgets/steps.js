// The steps of rewriting: a slider from the graph as it was written to what became of it, and the rules in order.
function addSteps(graph) {
  const bar = graph.stepBar;
  const slider = node("input", { type: "range", min: 0, step: 1, "aria-label": "step of rewriting" });
  const text = node("span", { class: "tm-step" });
  const back = button("\u25C2", "one rewrite back", () => graph.stepTo(graph.stepNow() - 1));
  const onward = button("\u25B8", "one rewrite on", () => graph.stepTo(graph.stepNow() + 1));
  bar.append(back, slider, onward, text);
  slider.addEventListener("input", () => graph.stepTo(slider.valueAsNumber));

  graph.steps = () => (graph.details && graph.view && graph.details.steps[graph.view.name]) || [];
  graph.stepNow = () => (graph.step === null ? graph.steps().length - 1 : graph.step);
  const told = (step, k) => (k === 0 ? ["as it was written"] : !step.rewrites.length ? ["housekeeping: what nothing reads is gone, loops and branches are tidied"]
    : step.rewrites.map((parts) => parts.filter(Boolean).join(" \u00b7 ")));

  graph.stepTo = function stepTo(k) {
    const steps = graph.steps();
    if (k < 0 || k >= steps.length) return;
    graph.show(graph.view.name, {
      step: k === steps.length - 1 ? null : k, made: steps[k].made,
      then: () => graph.say(`step ${k} of ${steps.length - 1}: ${told(steps[k], k).join("; ")}`, true),
    });
  };
  // the slider and the list say what is shown
  graph.stepped = function stepped() {
    const steps = graph.steps();
    bar.hidden = graph.rules.hidden = steps.length < 2;
    if (bar.hidden) return;
    const now = graph.stepNow(), words = told(steps[now], now);
    slider.max = steps.length - 1;
    slider.value = now;
    slider.setAttribute("aria-valuetext", `${now} of ${steps.length - 1}: ${words.join("; ")}`);
    text.textContent = `step ${now} of ${steps.length - 1}: ${words[0]}${words.length > 1 ? `, and ${words.length - 1} more` : ""}`;
    text.title = words.join("\n");
    back.disabled = !now;
    onward.disabled = now === steps.length - 1;
    if (graph.rules.dataset.view !== graph.view.name) {
      graph.rules.dataset.view = graph.view.name;
      const list = node("ol", { start: "0" });
      steps.forEach((step, k) => {
        const item = node("li");
        told(step, k).forEach((line, n) => item.appendChild(n ? node("div", {}, line) : button(line, "", () => graph.stepTo(k))));
        list.appendChild(item);
      });
      graph.rules.replaceChildren(node("summary", {}, `Rules of this stage, in order (${steps.length - 1})`), list);
    }
    [...graph.rules.lastChild.children].forEach((item, k) => item.classList.toggle("on", k === now));
  };
}
