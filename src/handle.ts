import { randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { type AccessEntry, describeRequest } from './access-log.js'
import type { Authenticate } from './auth/authenticate.js'
import type { Caller } from './auth/caller.js'
import { anonymousPayload } from './auth/payload-mode.js'
import type { Context } from './context.js'
import type { ContextFactory } from './context-factory.js'
import type { WithCors } from './cors/with-cors.js'
import { S3Error } from './errors/s3-error.js'
import { versionHeader } from './extension/document-reply.js'
import { errorFormatOf } from './extension/format.js'
import type { Limits } from './limits.js'
import { requireExpectedOwner } from './operations/common/expected-owner.js'
import { refuseRestricted } from './policy/public-access-block.js'
import type { AnyOperation } from './registry/plugin.js'
import type { OperationTable, Selected } from './registry/table.js'
import type { Addressing } from './request/addressing.js'
import { hoistedHeaders } from './request/hoisted-headers.js'
import { openBody } from './request/open-body.js'
import { readRequest } from './request/read-request.js'
import { readWhole } from './request/read-whole.js'
import type { RequestHead, S3Request } from './request/s3-request.js'
import { errorReply, toS3Error } from './response/error-reply.js'
import type { Reply, ReplyHeaders } from './response/reply.js'
import { sayContinue } from './response/say-continue.js'
import { send } from './response/send.js'
import type { GatewayLinks } from './share/gateway-links.js'

export interface HandleParts {
  readonly authenticate: Authenticate
  readonly table: OperationTable
  readonly links: GatewayLinks
  /** Context of a request; also decides which gateway account it acts as. */
  readonly contexts: Pick<ContextFactory, 'for' | 'anonymous'>
  readonly limits: Limits
  readonly addressing: Addressing
  readonly withCors: WithCors
  /** Called once per request after the answer was sent. */
  readonly onDone: (entry: AccessEntry) => void
}

/** Serves one request. Never rejects. */
export type Handle = (incoming: IncomingMessage, outgoing: ServerResponse) => Promise<void>

/** THE FLOW: read -> authenticate -> select -> run -> send. */
export function createHandle(parts: HandleParts): Handle {
  return async function handle(incoming, outgoing) {
    const id = requestId()
    const started = performance.now()
    // A client may leave at any moment: what matters of it reaches whoever reads or writes, and must not end the process.
    incoming.on('error', () => {})
    outgoing.on('error', () => {})
    let head: RequestHead | undefined
    let selected: Selected | undefined
    let caller: Caller | undefined
    let reply: Reply
    let failure: S3Error | undefined
    const place = () => ({
      id,
      resource: head?.path ?? incoming.url ?? '/',
      ...(head && { form: errorFormatOf(head) }),
    })
    try {
      head = readRequest(incoming, id, parts)
      const link = await parts.links(head)
      caller =
        link || isPreflight(head)
          ? undefined
          : await parts.authenticate(head, bodyReader(head, incoming, outgoing, parts.limits))
      if (caller?.presigned) head = { ...head, headers: hoistedHeaders(head) }
      selected = link ?? parts.table.select(head)
      const context = await admit(parts, selected.operation, caller, head)
      const request = toRequest(head, caller, selected, incoming, outgoing, parts.limits)
      requireExpectedOwner(request, context)
      reply = await run(selected.operation, request, context)
    } catch (thrown) {
      failure = toS3Error(thrown)
      reply = errorReply(failure, place())
      if (selected?.operation.call) reply = withHeaders(reply, versionHeader(selected.plugin))
    }
    if (head) reply = await parts.withCors(head, reply)
    const sent = await send(incoming, outgoing, reply, place())
    failure = sent.failure ?? failure
    parts.onDone(describeRequest({ id, incoming, outgoing, head, selected, caller, reply, failure, started, sent }))
  }
}

function withHeaders(reply: Reply, headers: ReplyHeaders): Reply {
  return { ...reply, headers: { ...headers, ...reply.headers } }
}

/** 16 hex digits, as S3's. From a UUID, because Node keeps random bytes ready for those: a call for eight bytes costs 7 µs. */
function requestId(): string {
  const uuid = randomUUID()
  return (uuid.slice(0, 8) + uuid.slice(-8)).toUpperCase()
}

/** Browsers never sign it; on a presigned URL it carries the signature of the request that it asks about. */
function isPreflight(head: RequestHead): boolean {
  return head.method === 'OPTIONS'
}

async function admit(
  { contexts }: HandleParts,
  operation: AnyOperation,
  caller: Caller | undefined,
  head: RequestHead,
): Promise<Context> {
  if (caller || operation.access === 'public') return contexts.for(caller)
  if (operation.access !== 'anonymous') {
    throw new S3Error('AccessDenied', { message: 'Anonymous access is not allowed: sign the request.' })
  }
  const context = contexts.anonymous()
  await refuseRestricted(context.settings, head)
  return context
}

/** For signatures over the hash of a body that nobody told: see readWhole. */
function bodyReader(head: RequestHead, incoming: IncomingMessage, outgoing: ServerResponse, limits: Limits) {
  return readWhole(incoming, head, { idleMs: limits.bodyIdleMs, beforeBody: () => sayContinue(outgoing) })
}

function toRequest(
  head: RequestHead,
  caller: Caller | undefined,
  selected: Selected,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  limits: Limits,
): S3Request {
  return {
    ...head,
    plugin: selected.plugin,
    params: selected.params,
    body: openBody(incoming, head, caller?.payload ?? anonymousPayload(head), limits, () => sayContinue(outgoing)),
    get signal() {
      return whenGone(outgoing)
    },
  } as S3Request
}

/** Made when somebody asks for it, which hardly any operation does: an AbortController costs more than the look-up of the operation. */
function whenGone(outgoing: ServerResponse): AbortSignal {
  const gone = new AbortController()
  if (outgoing.destroyed && !outgoing.writableFinished) gone.abort()
  outgoing.once('close', () => {
    if (!outgoing.writableFinished) gone.abort()
  })
  return gone.signal
}

/** The table hands an operation only requests of its own resource, which the union of types cannot say. */
function run(operation: AnyOperation, request: S3Request, context: Context): Promise<Reply> {
  return (operation.run as (request: S3Request, context: Context) => Promise<Reply>)(request, context)
}
