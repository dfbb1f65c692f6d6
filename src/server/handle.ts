import { randomUUID } from 'node:crypto'
import type { IncomingMessage, ServerResponse } from 'node:http'
import { continuesUpload, requiredActions, signRequired } from '../access/authorizer.js'
import { hasPolicies } from '../access/documents.js'
import { requireNeeds } from '../access/rights.js'
import type { Context } from '../api/context.js'
import type { Caller } from '../api/identity.js'
import type { Limits } from '../api/limits.js'
import type { AnyOperation } from '../api/operation.js'
import type { Reply, ReplyHeaders, RequestHead, S3Request } from '../api/request.js'
import { type Authenticate, isBearer, isStsCall } from '../auth/authenticate.js'
import { anonymousPayload } from '../auth/signatures/parsed-signature.js'
import type { S3Error } from '../common/errors/s3-error.js'
import type { ClientRate } from '../common/http/client-rate.js'
import { clientOf } from '../common/quota.js'
import { type Addressing, clientAt } from '../http/addressing.js'
import { ArrivedRequest } from '../http/arrived-request.js'
import { type Bodies, readWhole } from '../http/body/body.js'
import { type BeforeBody, openBody } from '../http/body/open-body.js'
import type { WithCors } from '../http/cors.js'
import { type ErrorPlace, errorReply, toS3Error } from '../http/error-reply.js'
import { hoistedHeaders } from '../http/headers.js'
import { readLoosely, readRequest } from '../http/read-request.js'
import { send, sendContinue } from '../http/send.js'
import { versionHeader } from '../plugins/calls/answer-now.js'
import { errorFormatOf } from '../plugins/calls/format.js'
import { type OperationTable, refuseVersion2, type Selected } from '../plugins/table.js'
import { refuseRestricted } from '../s3/access/public-access-block.js'
import { requireExpectedOwner } from '../s3/bucket/owner.js'
import type { GatewayLinks } from '../s3/share.js'
import { taggingOfHeader } from '../s3/tagging/tags.js'
import { describeRequest, type OnDone } from './access-log.js'
import type { Audit } from './audit.js'
import type { ContextFactory } from './context-factory.js'
import { type Admission, admitClient, type Traffic } from './traffic/traffic.js'

export interface HandleDeps {
  readonly authenticate: Authenticate
  readonly table: OperationTable
  readonly links: GatewayLinks
  /** Creates the context of a request, which selects the gateway account. */
  readonly contexts: Pick<ContextFactory, 'for' | 'anonymous'>
  readonly limits: Limits
  /** Limits the requests and bytes of clients. */
  readonly traffic: Traffic
  /** Limits the bodies that are read at the same time. */
  readonly bodies: Bodies
  /** Limits unsigned requests with a token for the service behind a call: each is a request to that service. */
  readonly bearers: ClientRate
  readonly addressing: Addressing
  readonly withCors: WithCors
  /** Records changes, before their answer is sent. */
  readonly audit: Audit | undefined
  /** Called once per request after the answer was sent. */
  readonly onDone: OnDone
}

/** Serves one request. Never rejects. */
export type Handle = (incoming: IncomingMessage, outgoing: ServerResponse) => Promise<void>

/** THE FLOW: read -> authenticate -> select -> decide -> run -> send. */
export function createHandle(parts: HandleDeps): Handle {
  return async function handle(incoming, outgoing) {
    const id = requestId()
    const started = performance.now()
    // A client may disconnect at any time. Readers and writers receive the error; without a listener it would end the
    // process.
    incoming.on('error', ignore)
    outgoing.on('error', ignore)
    let head: RequestHead | undefined
    let selected: Selected | undefined
    let caller: Caller | undefined
    let reply: Reply
    let failure: S3Error | undefined
    let context: Context | undefined
    let admission: Admission | undefined
    let request: S3Request | undefined
    const place = (): ErrorPlace => ({
      id,
      resource: head?.path ?? incoming.url ?? '/',
      form: errorFormOf(head ?? readLoosely(incoming, parts.addressing)),
    })
    try {
      head = readRequest(incoming, id, parts)
      admission = admitClient(parts.traffic, head, incoming)
      const link = await parts.links(head)
      caller =
        link || isPreflight(head)
          ? undefined
          : await parts.authenticate(head, bodyReader(head, incoming, outgoing, parts))
      admission?.identify(caller)
      if (caller?.presigned) head = { ...head, headers: await hoistedHeaders(head, caller) }
      selected = link ?? parts.table.select(head)
      refuseVersion2(selected.operation, caller)
      context = admit(parts, selected.operation, caller, head)
      await decide(selected, head, context)
      await requireExpectedOwner(head, context)
      await requireNeeds(selected.operation, head, context)
      await requireOwned(selected.operation, head, context)
      request = toRequest(head, caller, selected, incoming, outgoing, parts)
      reply = await run(selected.operation, request, context, parts)
    } catch (thrown) {
      failure = toS3Error(thrown)
      if (context && head && failure.code === 'AccessDenied')
        failure = await whyDenied(failure, selected, head, context)
      reply = errorReply(failure, place())
      if (selected?.operation.call) reply = withHeaders(reply, versionHeader(selected.plugin))
      // Clients learn the region of a bucket from an unsigned HEAD that is refused.
      if (context && failure.status === 403 && selected?.operation.name === 'HeadBucket')
        reply = withHeaders(reply, { 'x-amz-bucket-region': context.server.region })
    }
    if (head) reply = await parts.withCors(head, reply)
    if (parts.audit) await parts.audit({ id, head, selected, caller, form: context?.form, reply, failure })
    const sent = await send(incoming, outgoing, reply, id, place)
    admission?.leave(sent.bytes)
    failure = sent.failure ?? failure
    const remote = head?.remoteAddress ?? clientAt(incoming, parts.addressing).address
    parts.onDone(
      describeRequest({
        id,
        incoming,
        outgoing,
        head,
        selected,
        caller,
        context,
        reply,
        failure,
        started,
        sent,
        received: request?.body.received,
        remote,
      }),
      incoming,
      outgoing,
    )
  }
}

function ignore(): void {}

/** The error of a refused request whose bucket or object is not there, if its caller may know that. */
function whyDenied(failure: S3Error, selected: Selected | undefined, head: RequestHead, context: Context) {
  const action = selected?.operation.action
  const name = typeof action === 'string' ? action : undefined
  return context.authorizer.missing(failure, name, head).catch(() => failure)
}

function errorFormOf(head: Parameters<typeof errorFormatOf>[0]): ErrorPlace['form'] & string {
  return isStsCall(head) ? 'sts' : errorFormatOf(head)
}

function withHeaders(reply: Reply, headers: ReplyHeaders): Reply {
  return { ...reply, headers: { ...headers, ...reply.headers } }
}

/** 16 hex digits like those of S3. Uses a UUID, for which Node caches random bytes: randomBytes(8) costs 7 µs. */
function requestId(): string {
  const uuid = randomUUID()
  return (uuid.slice(0, 8) + uuid.slice(-8)).toUpperCase()
}

/** Browsers never sign a preflight. On a presigned URL it carries the signature of the request that follows. */
function isPreflight(head: RequestHead): boolean {
  return head.method === 'OPTIONS'
}

/** An unsigned call of a plugin is refused before anything is read: no policy opens it. */
function admit(
  { contexts }: HandleDeps,
  operation: AnyOperation,
  caller: Caller | undefined,
  head: RequestHead,
): Context {
  if (caller || operation.access === 'public' || isPassedOn(operation, caller, head))
    return contexts.for(caller, operation, head)
  if (operation.call || (operation.access !== 'anonymous' && head.bucket === undefined)) throw signRequired()
  return contexts.anonymous(operation, head)
}

/**
 * The decision about the resource of the request. Operations with further resources, such as the source of a copy, ask
 * the same authorizer for each.
 */
async function decide({ operation, plugin }: Selected, head: RequestHead, context: Context): Promise<void> {
  // The token of such a request is for the service behind the call, which decides.
  if (isPassedOn(operation, context.caller, head)) return
  const unsigned = !context.caller && operation.access !== 'public'
  if (unsigned) await refuseRestricted(context.settings, head)
  const upload = continuesUpload(operation) ? await uploadOf(head, context) : undefined
  const asked = requiredActions(operation, plugin, head, context.plugins.storageClasses, taggingOfHeader, upload)
  await context.authorizer.decide(...asked)
  if (!unsigned || operation.access === 'anonymous') return
  const granted =
    asked.length > 0 && asked.every(({ action, key }) => context.authorizer.granted(action, head.bucket ?? '', key))
  if (!granted) throw signRequired()
}

/** True for an unsigned request with a bearer token, if its operation takes one. */
function isPassedOn({ access }: AnyOperation, caller: Caller | undefined, head: RequestHead): boolean {
  return access === 'bearer' && !caller && isBearer(head)
}

/** Returns the upload that the request names, if a document can decide by it. */
async function uploadOf({ bucket, key, query }: RequestHead, { caller, authorizer, state }: Context) {
  if (bucket === undefined || (!(caller && hasPolicies(caller.identity)) && !(await authorizer.documents(bucket))))
    return undefined
  const upload = await state.uploads.get(query.get('uploadId') ?? '')
  return upload?.bucket === bucket && upload.key === key ? upload : undefined
}

/** See Operation.access. Calls the gateway, so it runs after the checks that need no call. */
async function requireOwned(operation: AnyOperation, { bucket }: RequestHead, context: Context): Promise<void> {
  // A call that creates a job checks this itself: a repeated client token must return its job even if the bucket is
  // gone or the gateway is unreachable.
  const asksLater = operation.call?.job !== undefined
  if (operation.access === 'owner' && bucket !== undefined && !asksLater) await context.checks.requireOwner(bucket)
}

/** Reads the body for signatures that cover an undeclared hash: see readWhole. */
function bodyReader(head: RequestHead, incoming: IncomingMessage, outgoing: ServerResponse, parts: BodyDeps) {
  const beforeBody = takingIn(parts, () => clientOf('', head.remoteAddress), outgoing)
  return readWhole(incoming, head, { patience: parts.limits, beforeBody })
}

type BodyDeps = Pick<HandleDeps, 'limits' | 'bodies'>

/** Reserves a slot for the client's body, then sends `100 Continue`. */
function takingIn({ bodies }: BodyDeps, client: () => string, outgoing: ServerResponse): BeforeBody {
  return () => {
    const leave = bodies.enter(client())
    sendContinue(outgoing)
    return leave
  }
}

function toRequest(
  head: RequestHead,
  caller: Caller | undefined,
  selected: Selected,
  incoming: IncomingMessage,
  outgoing: ServerResponse,
  parts: BodyDeps,
): S3Request {
  const client = () => clientOf(caller?.identity.accessKeyId ?? '', head.remoteAddress)
  const payload = caller?.payload ?? anonymousPayload(head)
  const body = openBody(incoming, head, payload, parts.limits, takingIn(parts, client, outgoing))
  return new ArrivedRequest(head, selected, body, outgoing) as S3Request
}

function run(operation: AnyOperation, request: S3Request, context: Context, parts: HandleDeps): Promise<Reply> {
  // The table passes an operation only requests of its own resource; the union type cannot express that.
  const work = () => (operation.run as (request: S3Request, context: Context) => Promise<Reply>)(request, context)
  return isPassedOn(operation, context.caller, request) ? parts.bearers.run(request.remoteAddress, work) : work()
}
