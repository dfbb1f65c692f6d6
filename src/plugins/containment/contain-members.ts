import { withinDeadline } from '../../common/deadline.js'
import type { Context } from '../../server/context.js'
import type { CallFacts } from '../calls/declare/call.js'
import { blame } from './blame.js'

type Member = Readonly<Record<string, string>>

/**
 * Contains `members` of a call, which listings of the virtual bucket use: each name must be text and come within the
 * deadline.
 */
export function containMembers(plugin: string, call: CallFacts, deadlineMs: number): CallFacts {
  if (!call.members) return call
  return { ...call, members: (context) => guarded(plugin, call, context, deadlineMs) }
}

async function* guarded(plugin: string, call: CallFacts, context: Context, ms: number): AsyncGenerator<Member> {
  let names: AsyncIterator<Member> | undefined
  try {
    names = call.members?.(context)[Symbol.asyncIterator]()
    for (;;) {
      const next = await withinDeadline(names?.next() as Promise<IteratorResult<Member>>, ms)
      if (next.done) break
      if (Object.values(next.value).some((name) => typeof name !== 'string'))
        throw new TypeError('it yielded a name that is not a string')
      yield next.value
    }
  } catch (thrown) {
    throw blame(thrown, plugin, `members() of ${call.name}`)
  } finally {
    // Do not wait for an iterator that hangs.
    names?.return?.().catch(() => {})
  }
}
