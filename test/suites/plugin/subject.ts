import type { z } from 'zod'
import type { Plugin } from '../../../src/api/plugin.js'
import type { PluginDefinition } from '../../../src/plugins/define-plugin.js'

/** What is checked. */
export interface Subject {
  readonly name: string
  /** Absent for the server's own, which have no options and are not named by a user. */
  readonly definition?: PluginDefinition<z.ZodType>
  /** A fresh one at each call. */
  make(): Plugin
  /** It is in every server anyway, and cannot be exchanged there. */
  readonly core: boolean
}

/** One check of one thing. */
export interface CheckResult {
  /** `Greet: refused without a signature` */
  readonly name: string
  readonly ok: boolean
  /** What is wrong and, where it helps, what to do. */
  readonly detail?: string
}

/** @param problem undefined when all is well */
export function result(name: string, problem: string | undefined): CheckResult {
  return problem === undefined ? { name, ok: true } : { name, ok: false, detail: problem }
}
