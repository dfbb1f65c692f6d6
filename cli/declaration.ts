import type { collected } from './command.js'
import { type Config, type OptionName, optionNames } from './config/config.js'

type Action = (config: Config, ...rest: never[]) => Promise<unknown>

export interface CommandDeclaration {
  /** The words behind `dealgate`: `keys add`. */
  readonly name: string
  readonly help: string
  /** The options of the configuration that it takes. */
  readonly options: readonly OptionName[]
  readonly operand?: readonly [name: string, help: string]
  readonly flags?: readonly Flag[]
  /**
   * It is about what is in a data folder, which must be one, unless an option or a flag of these names, in camelCase,
   * says where else that is.
   */
  readonly inData?: readonly string[]
  /** What the help ends with. */
  readonly after?: string
  /** Loaded when it runs, so that `--help`, a bad option or `presign` do not load the server. */
  readonly run: () => Promise<Action> | Action
  /** The audit log gets a line of it; a function is false for operands and flags that only show something. */
  readonly changes?: (...rest: readonly unknown[]) => boolean
}

export type Flag = readonly [flag: string, help: string, defaultValue?: string | typeof collected]

export function named(names: RegExp): readonly OptionName[] {
  return optionNames.filter((name) => names.test(name))
}
