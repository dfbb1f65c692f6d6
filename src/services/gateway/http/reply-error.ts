import { isDiskFull } from '../../../common/disk-reserve.js'
import { type HeaderList, reply } from '../../http/reply.js'
import { GatewayError } from '../errors.js'
import type { Exchange } from './exchange.js'
import { replyText } from './reply.js'

/** Converts any thrown value to a GatewayError. Unexpected errors are logged and become Internal. */
export function asGatewayError(error: unknown, { context }: Pick<Exchange, 'context'>): GatewayError {
  if (error instanceof GatewayError) return error
  if (isDiskFull(error)) return new GatewayError('StorageFull', {}, error)
  context.log.error({ err: error }, 'A request failed.')
  return new GatewayError('Internal', {}, error)
}

/** Answers as REST endpoints do: the status and the text of the error. */
export function replyRestError(exchange: Exchange, error: unknown, headers: HeaderList = []): void {
  const { quirks, names } = exchange.context
  const known = asGatewayError(error, exchange)
  const code: HeaderList = quirks.has('code-zero-errors') ? [] : [`${names.header}error-code`, known.code]
  const fence: HeaderList = known.subject.fence === undefined ? [] : [`${names.header}fence`, known.subject.fence]
  const text = known.restText(quirks)
  const body = quirks.has('fs3-texts') ? JSON.stringify({ data: {}, status: 'fail', message: text }) : text
  replyText(exchange, known.status, body, [...code, ...fence, ...headers])
}

/** Answers with the XML error document of S3. */
export function replyXmlError(exchange: Exchange, error: unknown, headers: HeaderList = []): void {
  const known = asGatewayError(error, exchange)
  const { quirks } = exchange.context
  const document =
    '<?xml version="1.0" encoding="UTF-8"?>\n' +
    `<Error><Code>${known.code}</Code><Message>${escapeXml(known.restText(quirks))}</Message>` +
    `<Resource>${escapeXml(exchange.target.path)}</Resource></Error>`
  reply(exchange, known.status, ['Content-Type', 'application/xml', ...headers], Buffer.from(document))
}

const XML_ESCAPES: Readonly<Record<string, string>> = { '<': '&lt;', '>': '&gt;', '&': '&amp;', '"': '&quot;' }

function escapeXml(text: string): string {
  return text.replace(/[<>&"]/g, (character) => XML_ESCAPES[character] ?? character)
}
