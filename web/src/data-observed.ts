/** What a page of records of flows says in other words than that of an experiment. */
export interface Observed {
  /** What a row of the table of results is, such as "Flow". */
  row: string;
  /** Whether the command gives the same again; real hosts do not. */
  repeats: boolean;
}
