export interface Finding {
  readonly text: string
  /** Settings that work but should be changed, each with its remedy. */
  readonly warnings: readonly string[]
}
