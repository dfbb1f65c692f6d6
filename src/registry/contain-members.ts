import { withinDeadline } from '../common/deadline.js'
import type { Context } from '../context.js'
import type { CallFacts } from '../extension/call.js'
import { blame } from './blame.js'

type Member = Readonly<Record<string, string>>

/** The call with its `members`, which is asked when the virtual bucket is listed, fenced in: each name must come in time and be one. */
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
        throw new TypeError('it gave a name that is no text')
      yield next.value
    }
  } catch (thrown) {
    throw blame(thrown, plugin, `members() of ${call.name}`)
  } finally {
    // One that hangs is not waited for.
    names?.return?.().catch(() => {})
  }
}
