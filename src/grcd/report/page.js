// The readings of the node under the pointer. The page is whole without it: nodes have their names as titles.
(() => {
  const told = JSON.parse(document.getElementById("readings").textContent);
  const colours = { "held-out": "var(--data)", generated: "var(--samples)" };
  const tip = document.createElement("div");
  tip.id = "tip";
  tip.hidden = true;
  document.body.append(tip);
  const number = (x) => Number(x.toPrecision(3)).toString();

  function path(values, low, high) {
    let text = "", pen = "M";
    values.forEach((value, k) => {
      if (value === null) { pen = "M"; return; }
      const x = 220 * k / Math.max(1, values.length - 1), y = 58 - 56 * (value - low) / (high - low || 1);
      text += `${pen}${x.toFixed(1)} ${y.toFixed(1)}h0`;  // h0: one reading between two gaps is a dot
      pen = "L";
    });
    return text;
  }

  function show(node, event) {
    const lines = Object.entries(told.lines).map(([name, each]) => [name, each[node]]);
    const all = lines.flatMap(([, values]) => values.filter((value) => value !== null));
    const low = Math.min(...all), high = Math.max(...all);
    const drawn = lines.map(([name, values]) =>
      `<path d="${path(values, low, high)}" style="stroke: ${colours[name]}"/>`).join("");
    const legend = lines.map(([name]) => `<span style="color: ${colours[name]}">${name}</span>`).join(" ");
    tip.innerHTML = "<b></b><svg viewBox='-2 0 224 60'></svg><p></p><p></p>";
    tip.querySelector("b").textContent = told.names[node];
    tip.querySelector("svg").innerHTML = drawn;
    const [words, span] = tip.querySelectorAll("p");
    words.innerHTML = all.length ? legend : "no reading";
    words.append(all.length ? `: ${number(low)} to ${number(high)} ${told.unit}` : "");
    span.textContent = told.span.filter((each) => each).join(" to ");
    tip.hidden = false;
    const beside = event.clientX + 12 + tip.offsetWidth < innerWidth ? event.clientX + 12 : innerWidth - tip.offsetWidth - 4;
    tip.style.left = `${Math.max(4, beside)}px`;
    tip.style.top = `${Math.max(4, event.clientY - tip.offsetHeight - 12)}px`;
  }

  document.querySelectorAll("g.nodes").forEach((group) => group.querySelectorAll("use").forEach((dot, node) => {
    dot.querySelector("title")?.remove();  // the name is said once
    dot.setAttribute("aria-label", told.names[node]);
    dot.addEventListener("pointerenter", (event) => show(node, event));
    dot.addEventListener("pointerleave", () => { tip.hidden = true; });
  }));
})();
