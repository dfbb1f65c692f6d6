import type { z } from 'zod'
import type { Loadable } from '../../cli/process/load-plugins.js'
import type { Plugin } from '../../src/api/plugin.js'
import { makePlugin, type PluginDefinition } from '../../src/plugins/define-plugin.js'
import { checkBehaviour } from './plugin/behaviour.js'
import { checkContainment } from './plugin/containment.js'
import { checkDeclarations } from './plugin/declarations.js'
import { checkRouting } from './plugin/routing.js'
import { Bench } from './plugin/server.js'
import { type CheckResult, result, type Subject } from './plugin/subject.js'

export type { CheckResult } from './plugin/subject.js'
export { type Endpoint, type SignedRequest, signedFetch } from './sign.js'

/** What tap's `t` and the `t` of node:test have in common. */
export interface Tester {
  test(name: string, body: () => Promise<void>): PromiseLike<unknown>
}

/**
 * The contract that every plugin keeps, checked on a real server of its own over TCP: each operation is reached by what
 * it declares and by nothing else, refused without a signature, documented; errors are S3's documents; a fault in it
 * harms no other plugin; instances share nothing. Takes some seconds.
 * @param plugin what definePlugin returned, made with `options`
 */
export function checkPlugin(plugin: Loadable, options?: unknown): AsyncGenerator<CheckResult> {
  const definition: PluginDefinition<z.ZodType> = plugin.definition
  return checkSubject({ name: definition.name, definition, core: false, make: () => makePlugin(definition, options) })
}

/** Each check as a test of `t`: `test('the contract', (t) => testPlugin(t, hello))`. */
export async function testPlugin(t: Tester, plugin: Loadable, options?: unknown): Promise<void> {
  for await (const { name, ok, detail } of checkPlugin(plugin, options)) {
    await t.test(name, async () => {
      if (!ok) throw new Error(detail)
    })
  }
}

/**
 * The same of a plugin that is in every server, such as `s3`, as far as it applies there: its handlers cannot be
 * exchanged.
 */
export function checkCorePlugin(plugin: Pick<Plugin, 'name' | 'operations'>): AsyncGenerator<CheckResult> {
  return checkSubject({ name: plugin.name, core: true, make: () => plugin })
}

async function* checkSubject(subject: Subject): AsyncGenerator<CheckResult> {
  yield* checkDeclarations(subject)
  const bench = await Bench.open()
  const steps = subject.core ? [checkRouting] : [checkRouting, checkBehaviour, checkContainment]
  try {
    for (const step of steps) yield* guarded(step(subject, bench))
  } finally {
    await bench.close()
  }
}

/** A plugin that does not start fails the check, not the program that runs it. */
async function* guarded(checks: AsyncGenerator<CheckResult>): AsyncGenerator<CheckResult> {
  try {
    yield* checks
  } catch (error) {
    yield result('it starts, and answers', error instanceof Error ? error.message : String(error))
  }
}
