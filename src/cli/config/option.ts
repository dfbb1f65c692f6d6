import type { Kind } from './kinds.js'

/**
 * The definition of an option, for flags, environment, config file, validation, `--help` and docs/reference/options.md.
 */
export interface Option<T = unknown> {
  readonly group: Group
  readonly kind: Kind<T & {}>
  /** Undefined if the option has no default. */
  readonly default: T
  /** Unit of the number. */
  readonly unit?: string
  readonly help: string
  /** Never printed. */
  readonly secret?: true
}

type Group =
  | 'Endpoint'
  | 'Gateway'
  | 'Platform'
  | 'Payment'
  | 'Network'
  | 'State'
  | 'Buckets'
  | 'Plugins'
  | 'Limits'
  | 'Metrics'
  | 'Logs'
interface Details {
  readonly help: string
  readonly unit?: string
  readonly secret?: true
}

/** Declares an option. */
export function option<T extends {}>(
  group: Group,
  kind: Kind<T>,
  details: Details & { readonly default: NoInfer<T> },
): Option<T>
export function option<T extends {}>(group: Group, kind: Kind<T>, details: Details): Option<T | undefined>
export function option<T extends {}>(
  group: Group,
  kind: Kind<T>,
  details: Details & { readonly default?: T },
): Option<T | undefined> {
  return Object.freeze({ group, kind, default: undefined, ...details })
}
