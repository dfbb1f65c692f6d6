import type { CallFacts } from '../../calls/declare/call.js'
import type { AnyOperation } from '../../forms/plugin.js'
import type { Row } from '../../table/table.js'
import { pascal } from './shapes.js'

export interface NamedCall {
  readonly plugin: string
  readonly operation: AnyOperation
  readonly call: CallFacts
  /** Its name in the model, which no other call has. */
  readonly name: string
}

/**
 * Lists the calls of a model, each with a unique name. If two plugins have a call of the same name, each is prefixed
 * with its plugin's name; a name that is still taken gets a number.
 * @param plugin the plugin whose calls are listed; undefined for all
 */
export function namedCalls(rows: readonly Row[], plugin?: string): NamedCall[] {
  const calls = rows
    .filter((row) => plugin === undefined || row.plugin === plugin)
    .flatMap(({ plugin, operation }) => (operation.call ? [{ plugin, operation, call: operation.call }] : []))
  const owners = new Map<string, Set<string>>()
  for (const { plugin, call } of calls) owners.set(call.name, (owners.get(call.name) ?? new Set()).add(plugin))
  const taken = new Set<string>()
  return calls.map((one) => {
    const shared = (owners.get(one.call.name)?.size ?? 0) > 1
    const wanted = shared ? `${pascal(one.plugin)}${one.call.name}` : one.call.name
    let name = wanted
    for (let n = 2; taken.has(name); n++) name = `${wanted}${n}`
    taken.add(name)
    return { ...one, name }
  })
}
