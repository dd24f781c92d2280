/** The slider of time with its buttons. */
import type { Clock } from "./clock";
import { choice, html } from "./dom";
import { fixed } from "./format";

/** Simulated time as text, in ms for runs that take some. */
export function timeText(us: number, endUs: number): string {
  return endUs >= 1000 ? `${fixed(us / 1000, 2)} ms` : `${fixed(us, us % 1 ? 1 : 0)} µs`;
}

/** The controls. Keys work on the slider and on all that `keysOn` holds; `of` ends an instant. */
export function timeline(clock: Clock, keysOn: HTMLElement, of: string): HTMLElement {
  const steps = Math.round(clock.endUs / clock.stepUs);
  const play = html("button", { type: "button", class: "play", id: "play" }, "▶ Play");
  const slider = html("input", {
    type: "range",
    id: "time",
    min: 0,
    max: steps,
    step: 1,
    value: 0,
    "aria-label": "Simulated time",
  });
  const said = html("output", { id: "time-text", for: "time" });
  const pressed = { type: "button", id: "whole", "aria-pressed": "true" };
  const whole = html("button", pressed, "Whole run");
  const speeds = ["0.5", "1", "2", "4"].map((value) => ({ value, label: `×${value}` }));
  const speed = choice("speed", "Speed", speeds, "1", (value) => {
    clock.speed = Number(value);
  });
  const show = () => {
    const { us } = clock;
    whole.setAttribute("aria-pressed", String(us === null));
    slider.classList.toggle("unset", us === null);
    if (us !== null) slider.value = String(Math.round(us / clock.stepUs));
    const to = (us ?? 0) + clock.stepUs;
    const span = `${timeText(us ?? 0, clock.endUs)} – ${timeText(to, clock.endUs)}`;
    said.textContent = us === null ? "mean of the measured part" : span + of;
    slider.setAttribute("aria-valuetext", said.textContent);
  };
  clock.onChange(show);
  clock.onPlay((playing) => {
    play.textContent = playing ? "❚❚ Pause" : "▶ Play";
    play.setAttribute("aria-pressed", String(playing));
  });
  play.addEventListener("click", () => clock.toggle());
  whole.addEventListener("click", () => {
    clock.stop();
    clock.show(null);
  });
  slider.addEventListener("input", () => {
    clock.stop();
    clock.show(Number(slider.value) * clock.stepUs);
  });
  keysOn.addEventListener("keydown", (event) => {
    const target = event.target instanceof HTMLElement ? event.target : null;
    const own = target?.matches("button, summary, a, select, input[type=radio]") ?? false;
    if (event.key === " " && !own) {
      event.preventDefault();
      clock.toggle();
    }
    const move = { ",": -1, ".": 1 }[event.key];
    if (move !== undefined && !target?.matches("select")) {
      event.preventDefault();
      clock.stop();
      clock.step(move);
    }
  });
  show();
  return html("div", { class: "timeline" }, play, slider, said, whole, speed.element);
}
