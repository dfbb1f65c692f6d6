import type { IncomingMessage, ServerResponse } from 'node:http'
import { clientOf } from '../../common/quota.js'
import type { Caller, ReadWholeBody } from '../api/identity.js'
import type { Limits } from '../api/limits.js'
import type { RequestHead, S3Request } from '../api/request.js'
import { anonymousPayload } from '../auth/signatures/parsed-signature.js'
import { ArrivedRequest } from '../http/arrived-request.js'
import { type Bodies, readWhole } from '../http/body/body.js'
import { openBody } from '../http/body/open-body.js'
import type { Selected } from '../plugins/table.js'

/** Opens the bodies of requests. None is read, and no client is asked for one, before its bytes are needed. */
export interface RequestOpener {
  /** Returns what reads a small body for a signature that covers an undeclared hash: see `readWhole`. */
  bodyReader(head: RequestHead, incoming: IncomingMessage, outgoing: ServerResponse): ReadWholeBody
  /**
   * Returns the request as its operation gets it.
   * @throws S3Error InvalidDigest, InvalidRequest, NotImplemented for what the head declares of the body
   */
  open(
    head: RequestHead,
    selected: Selected,
    caller: Caller | undefined,
    incoming: IncomingMessage,
    outgoing: ServerResponse,
  ): S3Request
}

/** @param bodies slots of the bodies that are read at the same time: reading throws SlowDown if there is none */
export function createRequestOpener(limits: Limits, bodies: Bodies): RequestOpener {
  return {
    bodyReader(head, incoming, outgoing) {
      const beforeBody = () => bodies.takeIn(clientOf('', head.remoteAddress), outgoing)
      return readWhole(incoming, head, { bodyLimits: limits, beforeBody })
    },
    open(head, selected, caller, incoming, outgoing) {
      const payload = caller?.payload ?? anonymousPayload(head)
      const client = () => clientOf(caller?.identity.accessKeyId ?? '', head.remoteAddress)
      const body = openBody(incoming, head, payload, limits, () => bodies.takeIn(client(), outgoing))
      return new ArrivedRequest(head, selected, body, outgoing) as S3Request
    },
  }
}
