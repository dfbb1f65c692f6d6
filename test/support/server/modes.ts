import { legacy } from '../../../services/index.js'

/**
 * Modes of the embedded gateway. Everything that depends on the gateway runs in both: `full` has all features of the
 * interface; `legacy` has the quirks of public deployments.
 */
export type Mode = 'full' | 'legacy'
export const modes: readonly Mode[] = ['full', 'legacy']

/** The quirks of a mode, for a gateway in this process. */
export const quirksOf = (mode: Mode): typeof legacy => (mode === 'legacy' ? legacy : [])

/** The value of `--gateway-quirks` for a mode. */
export const quirksOption = (mode: Mode): string => (mode === 'legacy' ? 'legacy' : 'none')
