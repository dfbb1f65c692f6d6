import type { IncomingMessage, ServerResponse } from 'node:http'
import type { S3Error } from '../../common/errors/s3-error.js'
import { authorize } from '../access/authorize.js'
import type { Context } from '../api/context.js'
import type { Caller } from '../api/identity.js'
import type { Reply, RequestHead, S3Request } from '../api/request.js'
import type { Authenticate } from '../auth/authenticate.js'
import type { WithCors } from '../http/cors.js'
import { hoistedHeaders } from '../http/headers.js'
import { forgetSecrets, type RequestReader } from '../http/read-request.js'
import type { SendReply } from '../http/send.js'
import { type OperationTable, refuseVersion2, type Selected } from '../plugins/table.js'
import type { GatewayLinks } from '../s3/share.js'
import { type RequestFacts, requestId } from './access-log.js'
import type { Audit } from './audit.js'
import type { BucketLogs } from './bucket-logs.js'
import type { ConsoleAccess } from './console-address.js'
import type { Contexts } from './context.js'
import type { Observation } from './observe.js'
import type { RequestOpener } from './open-request.js'
import type { Passthrough } from './passthrough.js'
import { errorContextOf, refuse } from './refuse.js'
import type { RunOperation } from './run-operation.js'
import type { AdmitClient, CallerAdmission } from './traffic/traffic.js'

/** The steps of a request that depend on the options of the server, each made once by the file of its subject. */
export interface Steps {
  /** Measures and traces a request. */
  readonly observe: Observation['serve']
  /** Serves the gateway's own paths. Absent unless an option asks for it. */
  readonly passthrough: Pick<Passthrough, 'serve'> | undefined
  readonly reader: RequestReader
  /** Logs requests into buckets. Absent without a data folder. */
  readonly bucketLogs: Pick<BucketLogs, 'begun'> | undefined
  readonly admit: AdmitClient
  readonly links: GatewayLinks
  readonly console: Pick<ConsoleAccess, 'select'> | undefined
  readonly authenticate: Authenticate
  readonly table: Pick<OperationTable, 'select'>
  readonly contexts: Pick<Contexts, 'ofRequest'>
  readonly opener: RequestOpener
  readonly run: RunOperation
  readonly withCors: WithCors
  /** Records changes, before their answer is sent. */
  readonly audit: Audit
  readonly send: SendReply
  /** Records a request that has been answered: in metrics, traces and logs. */
  readonly ended: (facts: RequestFacts) => void
}

/**
 * THE FLOW. Each line of the `try` is a step, with the errors by which it ends the request; an error becomes the reply.
 */
export function createHandle(steps: Steps): (incoming: IncomingMessage, outgoing: ServerResponse) => void {
  return (incoming, outgoing) =>
    steps.observe(incoming, outgoing, () => {
      if (!steps.passthrough?.serve(incoming, outgoing)) void handle(incoming, outgoing)
    })

  /** Never rejects. */
  async function handle(incoming: IncomingMessage, outgoing: ServerResponse): Promise<void> {
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
    let admission: CallerAdmission | undefined
    let request: S3Request | undefined
    try {
      head = steps.reader.read(incoming, id) // MethodNotAllowed, InvalidURI, InvalidBucketName, KeyTooLongError
      steps.bucketLogs?.begun(head, incoming)
      admission = steps.admit(head, incoming) // SlowDown
      // A link that the gateway has signed, or a browser from the console: it names no caller of ours.
      const found = steps.links(head) // ServiceUnavailable
      const link = (found instanceof Promise ? await found : found) ?? steps.console?.select(head)
      const readBody = steps.opener.bodyReader(head, incoming, outgoing)
      caller = link ? undefined : await steps.authenticate(head, readBody) // SignatureDoesNotMatch, InvalidAccessKeyId
      admission?.identify(caller) // SlowDown
      if (caller?.presigned) head = { ...head, headers: await hoistedHeaders(head, caller) } // InvalidArgument
      selected = link ?? steps.table.select(head) // MethodNotAllowed, NotImplemented, InvalidArgument, NoSuchKey
      refuseVersion2(selected.operation, caller) // InvalidRequest
      context = steps.contexts.ofRequest(selected.operation, caller, head) // AccessDenied for unsigned requests
      await authorize(selected, head, context) // AccessDenied, NoSuchBucket, MethodNotAllowed, ServiceUnavailable
      request = steps.opener.open(head, selected, caller, incoming, outgoing) // InvalidDigest, InvalidRequest, NotImplemented
      reply = await steps.run(selected.operation, request, context) // the errors of the operation, SlowDown
    } catch (thrown) {
      const outline = head ?? steps.reader.outline(incoming, id)
      ;({ failure, reply } = await refuse(thrown, { outline, head, selected, context }))
    }
    if (head) forgetSecrets(head, reply)
    const outline = head ?? steps.reader.outline(incoming, id)
    reply = await steps.withCors(outline, reply)
    const answered = performance.now()
    const audited = steps.audit({ id, head, selected, caller, form: context?.form, reply, failure })
    if (audited) await audited
    const remote = outline.remoteAddress
    const sent = await steps.send(incoming, outgoing, reply, { id, remote }, () => errorContextOf(outline))
    admission?.leave(sent.bytes)
    failure = sent.failure ?? failure
    const { body } = request ?? {}
    steps.ended({
      ...{ id, incoming, outgoing, head, selected, caller, context, reply, failure, started, answered, sent, remote },
      ...{ received: body?.received, length: body?.length },
    })
  }
}

function ignore(): void {}
