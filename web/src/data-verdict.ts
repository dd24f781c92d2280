/** The part of the data contract (data.ts) that has the verdict on a site. */

/** What is wrong, who suffers, what would help. */
export interface Verdict {
  /** Whether cables and tables have no fault. */
  healthy: boolean;
  /** Kind of statement, such as "fault", and the statement. */
  lines: { label: string; text: string }[];
  /** Every fact of cables and tables, the worst first; in `more` where else it is. */
  facts: { fact: string; text: string; more: string[] }[];
}
