/** The parts of the data contract (data.ts) that are rows of tables. */

/** One number of a paper beside what this run obtained. */
export interface PublishedRow {
  name: string;
  /** As the source prints it; null if the source gives no number. */
  published: string | null;
  obtained: string;
  unit: string;
  /** Where it is published and why the two differ. */
  note: string;
}

/** A labelled fact about the run. */
export interface Fact {
  label: string;
  value: string;
  /** The variants it is true of; empty or absent if it is true of all. */
  variants?: string[];
}
