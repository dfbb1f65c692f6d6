import { z } from 'zod'
import { nameFailure } from '../../../common/address-failure.js'
import { parseJson } from '../../../common/json.js'
import { NetworkError } from '../network.js'

/** Longest quotation of a node's message. */
const MAX_WORDS = 300

export class KuboError extends Error {
  override readonly name = 'KuboError'

  constructor(message: string) {
    super(message.slice(0, MAX_WORDS))
  }
}

/** Error body of Kubo, with status 500, or 400 for an invalid argument. */
const failure = z.object({ Message: z.string(), Type: z.literal('error') })

export function nodeError(status: number, body: string): Error {
  const message = messageOf(body)
  if (message !== undefined && status !== 401 && status !== 403) return new KuboError(message)
  const reasons: Readonly<Record<number, string>> = {
    401: 'it requires other credentials',
    403: 'it refuses these credentials, or this client',
    404: 'there is no RPC of a Kubo node at this address',
    405: 'there is no RPC of a Kubo node at this address',
  }
  return new NetworkError(
    'Unavailable',
    `The Kubo node answers ${status}: ${reasons[status] ?? 'nothing that it says of itself'}.`,
  )
}

/** Returns the message of Kubo's error JSON; undefined when the text is something else. */
export function messageOf(text: string): string | undefined {
  return failure.safeParse(parseJson(text)).data?.Message
}

/** The error of a call that failed for this cause. */
export function unreachable(cause: unknown): NetworkError {
  const { code, message } = cause as NodeJS.ErrnoException
  const what = cause instanceof IdleTimeoutError ? 'does not answer' : 'cannot be reached'
  return new NetworkError(
    'Unavailable',
    `The Kubo node ${what} (--kubo-api): ${nameFailure(cause) ?? code ?? message}.`,
    { cause },
  )
}

/** A node that fails at a command that every node supports counts as unavailable. */
export function asUnavailable(error: unknown): unknown {
  return error instanceof KuboError ? new NetworkError('Unavailable', error.message, { cause: error }) : error
}

/** Maps errors of content requests. A node that hangs is searching for blocks that it does not have. */
export function asNotRetrievable(error: unknown): unknown {
  if (error instanceof KuboError) return new NetworkError('NotRetrievable', error.message, { cause: error })
  if (error instanceof NetworkError && error.cause instanceof IdleTimeoutError) {
    return new NetworkError('NotRetrievable', error.message, { cause: error })
  }
  return error
}

/** Abort reason of a timeout. */
export class IdleTimeoutError extends Error {
  override readonly name = 'IdleTimeoutError'

  constructor(ms: number) {
    super(`no data in either direction for ${ms / 1000} seconds`)
  }
}
