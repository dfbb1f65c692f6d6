/** The runner has a worker run a test file. */
export interface RunMessage {
  /** Path of the compiled test, such as `dist/test/cli/config.test.js`. */
  readonly file: string
  /** URL of the bundle to import. */
  readonly url: string
  readonly limitMs: number
  /** Time for sockets and timers to end by themselves after the last test, ms. */
  readonly drainMs: number
  /** Variables of the environment for this file. */
  readonly env: Readonly<Record<string, string>>
}

/** A worker reports on the file that it runs. */
export type WorkerMessage =
  | { readonly tap: string }
  /** The file has set a time limit of its own, ms. */
  | { readonly limitMs: number }
  /**
   * The file has ended; `left` lists what is open if that would keep a process of its own alive. `cpuMs` is the CPU
   * time of the file and of the processes that it has ended.
   */
  | { readonly left: readonly string[] | null; readonly cpuMs: number }
