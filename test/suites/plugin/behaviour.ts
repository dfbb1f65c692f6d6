import type { AnyOperation } from '../../../src/api/operation.js'
import type { Plugin } from '../../../src/api/plugin.js'
import { ask, described, documentProblem, refusalProblem } from './client.js'
import { BUCKET, KEY, requestFor } from './requests.js'
import type { Bench, Running } from './server.js'
import { type CheckResult, result, type Subject } from './subject.js'

const BODIES: readonly (Buffer | undefined)[] = [
  undefined,
  ...['{}', '{', '[1,2]', '<a', '<a>&x;</a>', 'a=b&a=c'].map((text) => Buffer.from(text)),
  Buffer.from([0, 255, 254, 13, 10, 0]),
  Buffer.alloc(3 * 1024 * 1024, ' '),
]

/** The plugin as it is: started, asked for everything, beside another instance of itself, stopped and started again. */
export async function* checkBehaviour(subject: Subject, bench: Bench): AsyncGenerator<CheckResult> {
  const one = await bench.start({ data: 'one', plugins: [subject.make()] })
  const other = await bench.start({ data: 'other', plugins: [subject.make()] })
  await makeObject(one)
  const { operations } = subject.make()
  const before = await statuses(other, operations)
  const firstCall = operations.find(({ call, on }) => call && !['GET', 'HEAD'].includes(on.method))
  for (const operation of operations) {
    const isFirst = operation === firstCall
    yield result(`${operation.name}: its errors are S3's documents`, await errorProblem(one, operation, isFirst))
    if (operation.call && operation.on.method === 'GET')
      yield result(
        `${operation.name}: ${LINKS[String(operation.call.presignable === true)]}`,
        await linkProblem(one, operation),
      )
  }
  yield result('two instances in one process share nothing', difference(before, await statuses(other, operations)))
  const held = await statuses(one, operations)
  await one.stop()
  yield result('one instance outlives the stop of another', difference(before, await statuses(other, operations)))
  const again = await bench.start({ data: 'one', plugins: [subject.make()] })
  yield result('it can be started again over the same data', difference(held, await statuses(again, operations)))
  await again.stop()
  await other.stop()
  const failures = [...one.lines, ...other.lines, ...again.lines].filter(({ msg }) => msg === 'a plugin failed to stop')
  yield result('it stops', failures.length > 0 ? JSON.stringify(failures[0]) : undefined)
}

async function makeObject(server: Running): Promise<void> {
  await ask(server, { method: 'PUT', target: `/${BUCKET}` })
  await ask(server, { method: 'PUT', target: `/${BUCKET}/${KEY}`, body: Buffer.from('for the plugin suite') })
}

/** What a link that leaks must not show, its operation does not answer to. */
async function linkProblem(server: Running, operation: AnyOperation): Promise<string | undefined> {
  const answer = await ask(server, requestFor(operation), 'presigned')
  if (operation.call?.presignable) return answer.status === 403 ? `the answer is ${described(answer)}` : undefined
  return refusalProblem(answer, 403, 'AccessDenied')
}

/**
 * Whatever is sent, the operation succeeds or says what is wrong with it; 502 to 504 are for upstreams that are not
 * here.
 */
async function errorProblem(server: Running, operation: AnyOperation, isFirst: boolean): Promise<string | undefined> {
  // The host reads the bodies of calls, for each of them alike.
  const some = operation.call && !isFirst ? BODIES.slice(0, -1) : BODIES
  const bodies = ['GET', 'HEAD'].includes(operation.on.method) ? [undefined] : some
  for (const body of bodies) {
    const answer = await ask(server, requestFor(operation, { ...(body && { body }) }))
    const what = body ? `a body of ${body.length} bytes (${JSON.stringify(body.toString('latin1', 0, 12))})` : 'no body'
    if (answer.status === 500) return `the answer to ${what} is ${described(answer)}: see the log`
    const problem = documentProblem(answer)
    if (problem) return `with ${what} ${problem}`
  }
  return undefined
}

const LINKS: Readonly<Record<string, string>> = {
  true: 'answered by a presigned link, as it declares',
  false: 'refused by a presigned link',
}

type Statuses = Readonly<Record<string, number>>

/** Of requests that change nothing. */
async function statuses(server: Running, operations: Plugin['operations']): Promise<Statuses> {
  const found: Record<string, number> = {}
  for (const operation of operations) {
    if (!['GET', 'HEAD'].includes(operation.on.method)) continue
    found[operation.name] = (await ask(server, requestFor(operation))).status
  }
  return found
}

function difference(before: Statuses, after: Statuses): string | undefined {
  const changed = Object.keys(before).filter((name) => before[name] !== after[name])
  if (changed.length === 0) return undefined
  return changed.map((name) => `${name} answered ${before[name]}, and then ${after[name]}`).join('; ')
}
