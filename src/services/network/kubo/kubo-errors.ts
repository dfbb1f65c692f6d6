import { z } from 'zod'
import { NetworkError } from '../network.js'
import { OutOfPatience } from './patience.js'

/** Of a node's words in messages of ours. */
const MAX_WORDS = 300

/** The node says that it cannot do what was asked. */
export class KuboError extends Error {
  override readonly name = 'KuboError'

  constructor(message: string) {
    super(message.slice(0, MAX_WORDS))
  }
}

/** What Kubo says of an error: status 500, or 400 where an argument is wrong. */
const failure = z.object({ Message: z.string(), Type: z.literal('error') })

export function nodeError(status: number, body: string): Error {
  const message = messageOf(body)
  if (message !== undefined && status !== 401 && status !== 403) return new KuboError(message)
  const reasons: Readonly<Record<number, string>> = {
    401: 'it wants other credentials',
    403: 'it refuses these credentials, or this client',
    404: 'there is no RPC of a Kubo node at this address',
    405: 'there is no RPC of a Kubo node at this address',
  }
  return new NetworkError(
    'Unavailable',
    `The Kubo node answers ${status}: ${reasons[status] ?? 'nothing that it says of itself'}.`,
  )
}

/** The message of an error as Kubo writes it; undefined when the text is none. */
export function messageOf(text: string): string | undefined {
  try {
    return failure.parse(JSON.parse(text)).Message
  } catch {
    return undefined
  }
}

/** The error of a call that came to nothing because of this. */
export function unreachable(cause: unknown): NetworkError {
  const { code, message } = cause as NodeJS.ErrnoException
  const what = cause instanceof OutOfPatience ? 'does not answer' : 'cannot be reached'
  return new NetworkError('Unavailable', `The Kubo node ${what}: ${code ?? message}.`, { cause })
}

/** A node that does not do what every node does is as good as none. */
export function asUnavailable(error: unknown): unknown {
  return error instanceof KuboError ? new NetworkError('Unavailable', error.message, { cause: error }) : error
}

/** What it means for content that was asked for: a node that hangs looks for blocks that it does not have. */
export function asNotRetrievable(error: unknown): unknown {
  if (error instanceof KuboError) return new NetworkError('NotRetrievable', error.message, { cause: error })
  if (error instanceof NetworkError && error.cause instanceof OutOfPatience) {
    return new NetworkError('NotRetrievable', error.message, { cause: error })
  }
  return error
}
