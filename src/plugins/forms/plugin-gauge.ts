export interface GaugeSample {
  /** Names of lower-case letters, digits and `_`. Few different values, none of which a client has chosen. */
  readonly labels: Readonly<Record<string, string>>
  readonly value: number
}

/** A value that the metrics of the server show. */
export interface PluginGauge {
  /** Lower-case letters, digits and `_`. The metric is `dealgate_<plugin>_<name>`. */
  readonly name: string
  readonly help: string
  /** Called by scrapes, at most every ten seconds; has three seconds. At most 200 samples are shown. */
  read(): Promise<readonly GaugeSample[]>
}
