import { type Reply, S3Error, type Transfer, xml } from 'dealgate/plugin'

/** The document of a reply. Throws the S3Error that a late document holds in its place. */
export async function textOf({ body }: Reply): Promise<string> {
  if (body === undefined || typeof body === 'string') return body ?? ''
  if (Buffer.isBuffer(body)) return body.toString()
  if ('late' in body) {
    const late = await body.late
    return typeof late === 'string' ? late : late.document
  }
  const pieces: Buffer[] = []
  for await (const piece of bytesOf(body.download)) pieces.push(Buffer.from(piece))
  return Buffer.concat(pieces).toString()
}

/** The XML document of a reply. Throws S3Error MalformedXML. */
export async function nodeOf(reply: Reply): Promise<xml.Node> {
  return (await xml.parseAny(Buffer.from(await textOf(reply)))).node
}

/** Waits for the end of a reply that nothing of is used. */
export async function endOf(reply: Reply): Promise<void> {
  const { body } = reply
  if (typeof body !== 'object' || Buffer.isBuffer(body)) return
  if ('download' in body) body.download.discard()
  else await body.late
}

/** The bytes of an object. Each piece is valid until the next one is asked for. */
export async function* contentOf(reply: Reply): AsyncGenerator<Buffer> {
  const { body } = reply
  if (typeof body === 'string') yield Buffer.from(body)
  else if (Buffer.isBuffer(body)) yield body
  else if (body && 'download' in body) yield* bytesOf(body.download)
  else if (body) throw new S3Error('InternalError', { message: 'The answer has no bytes.' })
}

interface Lent {
  readonly chunk: Buffer
  readonly done: () => void
}

async function* bytesOf(download: Transfer): AsyncGenerator<Buffer> {
  const whole = download.whole?.()
  if (whole) {
    yield whole
    return
  }
  const lent: Lent[] = []
  let wake = () => {}
  let end: { readonly error?: unknown } | undefined
  const finish = (how: { readonly error?: unknown }) => {
    end = how
    wake()
  }
  download
    .lend((chunk, done) => {
      lent.push({ chunk, done })
      wake()
    })
    .then(
      () => finish({}),
      (error) => finish({ error }),
    )
  try {
    for (;;) {
      const next = lent.shift()
      if (next) {
        yield next.chunk
        next.done()
      } else if (!end) await new Promise<void>((resolve) => (wake = resolve))
      else if ('error' in end) throw end.error
      else return
    }
  } finally {
    if (!end) download.discard()
  }
}
