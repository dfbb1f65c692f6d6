import { withinDeadline } from '../../../common/time.js'
import type { Context } from '../../api/context.js'
import type { AnyOperation, CallFacts, Operation } from '../../api/operation.js'
import { PausableDeadline, toPluginError } from '../deadlines.js'
import { type Deadlines, started } from './contained.js'
import { discardReply, guardReply } from './guard-reply.js'
import { guardRequest } from './guard-request.js'

/** Contains the handler of an operation, and the names that its call offers to listings. */
export function containOperation(plugin: string, operation: AnyOperation, deadlines: Deadlines): AnyOperation {
  // An operation receives only requests of its own kind; the union of types cannot express that.
  const inner = operation as Operation
  const run: Operation['run'] = async (request, context) => {
    const ms = operation.deadlineMs ?? deadlines.pluginDeadlineMs
    const deadline = new PausableDeadline(ms)
    const work = started(() => inner.run(guardRequest(request, deadline), context))
    try {
      return guardReply(await deadline.race(work), ms)
    } catch (thrown) {
      work.then(discardReply).catch(() => {})
      throw toPluginError(thrown, plugin, operation.name)
    } finally {
      deadline.clear()
    }
  }
  const call = operation.call && containMembers(plugin, operation.call, deadlines)
  return { ...operation, ...(call && { call }), run } as AnyOperation
}

type Member = Readonly<Record<string, string>>

/**
 * Contains `members` of a call, which listings of the virtual bucket use: each name must be text and come within the
 * deadline.
 */
function containMembers(plugin: string, call: CallFacts, deadlines: Deadlines): CallFacts {
  if (!call.members) return call
  return { ...call, members: (context) => guardedMembers(plugin, call, context, deadlines.pluginDeadlineMs) }
}

async function* guardedMembers(plugin: string, call: CallFacts, context: Context, ms: number): AsyncGenerator<Member> {
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
    throw toPluginError(thrown, plugin, `members() of ${call.name}`)
  } finally {
    // Do not wait for an iterator that hangs.
    names?.return?.().catch(() => {})
  }
}
