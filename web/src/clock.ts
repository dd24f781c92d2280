/** The instant the page shows, shared by maps, charts and details; and what plays it. */

/** Steps per second at a speed of 1, and for readers who asked for little motion. */
const STEPS_PER_SECOND = 10;
const STEPS_PER_SECOND_CALM = 2;

/** Simulated time in µs, or the whole run. */
export class Clock {
  /** Start of the frame that is shown, µs; null for the whole run. */
  us: number | null = null;
  speed = 1;
  private readonly listeners: (() => void)[] = [];
  private readonly states: ((playing: boolean) => void)[] = [];
  private request = 0;
  private last = 0;

  /** Steps of `stepUs` from 0; the last begins at `endUs`. */
  constructor(
    readonly stepUs: number,
    readonly endUs: number,
  ) {}

  /** Calls back whenever another instant is shown. */
  onChange(listener: () => void): void {
    this.listeners.push(listener);
  }

  /** Calls back when playing starts and stops. */
  onPlay(listener: (playing: boolean) => void): void {
    this.states.push(listener);
  }

  get playing(): boolean {
    return this.request !== 0;
  }

  /** Shows an instant, held inside the run, or the whole run. */
  show(us: number | null): void {
    const held = us === null ? null : Math.min(this.endUs, Math.max(0, us));
    if (held === this.us) return;
    this.us = held;
    for (const listener of this.listeners) listener();
  }

  /** Goes on by some steps; from the whole run, to its first instant. */
  step(steps: number): void {
    const index = this.us === null ? -1 : Math.round(this.us / this.stepUs);
    this.show(Math.max(0, index + steps) * this.stepUs);
  }

  toggle(): void {
    if (this.playing) this.stop();
    else this.play();
  }

  stop(): void {
    if (!this.playing) return;
    cancelAnimationFrame(this.request);
    this.request = 0;
    for (const listener of this.states) listener(false);
  }

  private play(): void {
    if (this.us === null || this.us >= this.endUs) this.show(0);
    this.last = performance.now();
    const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    const pace = calm ? STEPS_PER_SECOND_CALM : STEPS_PER_SECOND;
    const tick = (now: number) => {
      const due = Math.floor(((now - this.last) * pace * this.speed) / 1000);
      if (due > 0) {
        this.last += (due * 1000) / (pace * this.speed);
        // A picture that takes long is not made up for by leaps.
        this.step(Math.min(due, 4));
      }
      if (this.us !== null && this.us >= this.endUs) this.stop();
      else this.request = requestAnimationFrame(tick);
    };
    this.request = requestAnimationFrame(tick);
    for (const listener of this.states) listener(true);
  }
}
