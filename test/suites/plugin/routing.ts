import { setTimeout as sleep } from 'node:timers/promises'
import type { AnyOperation } from '../../../src/api/operation.js'
import { empty } from '../../../src/http/reply.js'
import { type MadePlugin, STANDARD } from '../../../src/plugins/define-plugin.js'
import { routeText } from '../../../src/plugins/table.js'
import { type Answered, ask, described, refusalProblem, type Vouching } from './client.js'
import { BUCKET, mayBeUnsigned, requestFor } from './requests.js'
import type { Bench, Running } from './server.js'
import { type CheckResult, result, type Subject } from './subject.js'

const MARK = 'x-suite-operation'
/** Something that no plugin declares. */
const FOREIGN = 'x-nobody-knows-this='
const LOG_PATIENCE_MS = 60_000

/**
 * Each operation is reached by what it declares, and by nothing else. What it does then is not asked here: others stand
 * in for the handlers.
 */
export async function* checkRouting(subject: Subject, bench: Bench): AsyncGenerator<CheckResult> {
  const plugin = subject.make()
  const server = await bench.start({ data: 'routing', plugins: subject.core ? [] : [markedRoutes(plugin)] })
  // Operations for the owner of a bucket alone need one.
  const makeBucket = () => ask(server, { method: 'PUT', target: `/${BUCKET}` })
  await makeBucket()
  for (const operation of plugin.operations) {
    const check = new RouteCheck(server, operation, subject)
    yield result(`${operation.name}: reached by ${routeText(operation)}`, await check.reached())
    // The operations of S3 are carried out, and without a bucket the refusal is another one.
    if (operation.name === 'DeleteBucket') await makeBucket()
    // A preflight is not signed, and has the query of the request that it asks about.
    if (operation.on.method === 'OPTIONS') continue
    yield mayBeUnsigned(operation)
      ? result(`${operation.name}: answered without a signature, as it declares`, await check.answersUnsigned())
      : result(`${operation.name}: refused without a signature`, await check.refuses('unsigned', 403, 'AccessDenied'))
    yield result(
      `${operation.name}: refused with a wrong signature`,
      await check.refuses('wrong secret', 403, 'SignatureDoesNotMatch'),
    )
    // It covers the sub-resources of S3 alone.
    if (!subject.core && (operation.call || !subject.definition?.standard)) {
      yield result(
        `${operation.name}: refused with a signature of version 2`,
        (await check.refuses('version 2', 400, 'InvalidRequest')) ?? (await check.refusesLink()),
      )
    }
    yield result(`${operation.name}: refused with a query key that it does not name`, await check.refusesForeignKeys())
  }
  await server.stop()
}

function markedRoutes(plugin: MadePlugin): MadePlugin {
  const operations = plugin.operations.map((operation) => ({
    ...operation,
    run: async () => empty({ [MARK]: operation.name }),
  }))
  return { name: plugin.name, operations, ...(plugin[STANDARD] && { [STANDARD]: true }) }
}

class RouteCheck {
  readonly #server: Running
  readonly #operation: AnyOperation
  readonly #plugin: string
  readonly #core: boolean

  constructor(server: Running, operation: AnyOperation, { name, core }: Subject) {
    this.#server = server
    this.#operation = operation
    this.#plugin = name
    this.#core = core
  }

  async reached(): Promise<string | undefined> {
    const answer = await ask(this.#server, requestFor(this.#operation))
    const who = this.#core ? await this.#logged(answer) : answer.headers[MARK]
    return who === this.#operation.name
      ? undefined
      : `the answer to ${routeText(this.#operation)} is ${described(answer)}, from ${who ?? 'no operation of it'}`
  }

  /** Handlers of the server's own cannot be exchanged, but the access log says who answered. */
  async #logged({ headers }: Answered): Promise<string | undefined> {
    for (const start = Date.now(); Date.now() - start < LOG_PATIENCE_MS; await sleep(5)) {
      const line = this.#server.lines.find(({ access }) => access?.requestId === headers['x-amz-request-id'])
      if (line?.access)
        return (line.access.plugin ?? 's3') === this.#plugin ? line.access.operation : line.access.plugin
    }
    return undefined
  }

  async answersUnsigned(): Promise<string | undefined> {
    const answer = await ask(this.#server, requestFor(this.#operation), 'unsigned')
    // What core S3 gives to whom is for the policies of buckets to say.
    return this.#core || this.#isFrom(answer) ? undefined : `the answer is ${described(answer)}`
  }

  async refuses(vouching: Vouching, status: number, code: string): Promise<string | undefined> {
    return this.#refusal(await ask(this.#server, requestFor(this.#operation), vouching), status, code)
  }

  async refusesLink(): Promise<string | undefined> {
    const answer = await ask(this.#server, requestFor(this.#operation), 'version 2 link')
    return answer.status >= 400 && !this.#isFrom(answer) ? undefined : `the answer to a link is ${described(answer)}`
  }

  async refusesForeignKeys(): Promise<string | undefined> {
    const foreign = await ask(this.#server, requestFor(this.#operation, { query: FOREIGN }))
    const problem = this.#refusal(foreign, 501, 'NotImplemented')
    if (problem || ['GET', 'HEAD'].includes(this.#operation.on.method)) return problem && `with ?${FOREIGN} ${problem}`
    const plain = await ask(this.#server, requestFor(this.#operation, { query: 'surprise=1' }))
    return this.#refusal(plain, 501, 'NotImplemented')
  }

  #refusal(answer: Answered, status: number, code: string): string | undefined {
    if (this.#isFrom(answer)) return 'it answered all the same'
    if (this.#operation.on.method !== 'HEAD') return refusalProblem(answer, status, code)
    return answer.status === status ? undefined : `the answer is ${described(answer)}, not ${status}`
  }

  #isFrom(answer: Answered): boolean {
    return answer.headers[MARK] !== undefined
  }
}
