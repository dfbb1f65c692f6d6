import type { ServerResponse } from 'node:http'
import type { RequestBody, RequestHead } from '../api/request.js'

/**
 * A request as its operation gets it: the head, the body, and the operation's name for it. A class, because an object
 * with a getter of its own and a copy of the head costs more than finding the operation.
 */
export class ArrivedRequest implements RequestHead {
  readonly id: RequestHead['id']
  readonly method: RequestHead['method']
  readonly target: string
  readonly rawPath: string
  readonly rawQuery: string
  readonly path: string
  readonly query: RequestHead['query']
  readonly headers: RequestHead['headers']
  readonly rawHeaders: readonly string[]
  readonly secure: boolean
  readonly host: string
  readonly hostBucket: string | undefined
  readonly signedHosts: readonly string[]
  readonly remoteAddress: string
  readonly secrets: Buffer[]
  readonly resource: RequestHead['resource']
  readonly bucket: string | undefined
  readonly key: string | undefined
  readonly plugin: string
  readonly params: Readonly<Record<string, string>>
  readonly body: RequestBody
  readonly #outgoing: ServerResponse
  #signal: AbortSignal | undefined

  constructor(
    head: RequestHead,
    { plugin, params }: Pick<ArrivedRequest, 'plugin' | 'params'>,
    body: RequestBody,
    outgoing: ServerResponse,
  ) {
    this.id = head.id
    this.method = head.method
    this.target = head.target
    this.rawPath = head.rawPath
    this.rawQuery = head.rawQuery
    this.path = head.path
    this.query = head.query
    this.headers = head.headers
    this.rawHeaders = head.rawHeaders
    this.secure = head.secure
    this.host = head.host
    this.hostBucket = head.hostBucket
    this.signedHosts = head.signedHosts
    this.remoteAddress = head.remoteAddress
    this.secrets = head.secrets
    this.resource = head.resource
    this.bucket = head.bucket
    this.key = head.key
    this.plugin = plugin
    this.params = params
    this.body = body
    this.#outgoing = outgoing
  }

  /** Created on first use: few operations need it, and an AbortController costs more than finding the operation. */
  get signal(): AbortSignal {
    this.#signal ??= whenGone(this.#outgoing)
    return this.#signal
  }
}

function whenGone(outgoing: ServerResponse): AbortSignal {
  const gone = new AbortController()
  if (outgoing.destroyed && !outgoing.writableFinished) gone.abort()
  outgoing.once('close', () => {
    if (!outgoing.writableFinished) gone.abort()
  })
  return gone.signal
}
