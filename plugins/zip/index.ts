import {
  type Caller,
  type Context,
  defineCall,
  defineOperation,
  definePlugin,
  type PluginHost,
  type Reply,
  S3Error,
  type S3Request,
  z,
} from 'dealgate/plugin'
import { ArchiveDownload } from './archive.js'
import { KeptSelections } from './kept.js'
import { Room } from './room.js'
import {
  bodyOf,
  checked,
  headersOf,
  invalid,
  PARAMETERS,
  type Selection,
  selectionBody,
  selectionOf,
} from './selection.js'
import { check } from './walk.js'

const SOURCE = 'docs/extensions.md#archives'

/** The calls decide on each object: a caller who may read all of them gets them together. */
const ACCESS = { access: 'signed', action: { each: 's3:GetObject' }, needs: { some: 'read' } } as const

/** Looking at 100,000 objects may take so long, ms. */
const DEADLINE_MS = 10 * 60_000

const HOUR_SECONDS = 3600

/** Objects as one archive. */
export default definePlugin({
  name: 'zip',
  standard: true,
  summary: 'Sends objects of a bucket as one ZIP archive, which is made while it is sent.',
  create(_, host) {
    const kept = new KeptSelections(host)
    const making = { host, room: new Room() }
    return {
      operations: [getZip(making, kept), postZip(making), keepSelection(kept)],
      async start() {
        host.schedule({ name: 'sweep', everySeconds: HOUR_SECONDS, run: ({ mayGoOn }) => kept.sweep(mayGoOn) })
      },
    }
  },
})

interface Making {
  readonly host: Pick<PluginHost, 'perform' | 'log'>
  readonly room: Room
}

function getZip(making: Making, kept: KeptSelections) {
  return defineOperation({
    ...ACCESS,
    name: 'GetZip',
    source: SOURCE,
    deadlineMs: DEADLINE_MS,
    on: { method: 'GET', resource: 'bucket', query: ['x-zip'], params: PARAMETERS, lists: ['key', 'prefix'] },
    async run(request, context) {
      const { entries } = request.query
      const id = request.query.get('selection')
      if (id !== undefined && entries.some(([name]) => name !== 'selection' && isOwn(name)))
        throw invalid('selection', 'A request names a kept selection, or keys and prefixes.')
      const selection =
        id === undefined ? selectionOf(checked(bodyOf(entries))) : await kept.get(callerOf(context), request.bucket, id)
      return answer(making, request, context, selection)
    },
  })
}

function isOwn(name: string): boolean {
  return PARAMETERS.some((own) => own === name)
}

function postZip(making: Making) {
  return defineOperation({
    ...ACCESS,
    name: 'PostZip',
    source: SOURCE,
    deadlineMs: DEADLINE_MS,
    on: { method: 'POST', resource: 'bucket', query: ['x-zip'] },
    async run(request, context) {
      const { payload } = callerOf(context)
      // Who sees the address must not choose what is read.
      if (payload.kind === 'unsigned' || (payload.kind === 'chunked' && !payload.signing))
        throw new S3Error('AccessDenied', {
          message: 'The signature must cover the body: send its SHA-256 in x-amz-content-sha256, not UNSIGNED-PAYLOAD.',
        })
      const { bytes } = await request.body.collect(context.limits.maxDocumentBytes)
      return answer(making, request, context, selectionOf(checked(parsed(bytes))))
    },
  })
}

function parsed(bytes: Buffer): unknown {
  try {
    return JSON.parse(bytes.toString())
  } catch (cause) {
    throw new S3Error('InvalidArgument', {
      ...{ message: 'The body must be JSON: {"Keys":[...],"Prefixes":[...]}.', cause },
      fields: { ArgumentName: 'body' },
    })
  }
}

function keepSelection(kept: KeptSelections) {
  return defineCall({
    ...{ ...ACCESS, ownRules: true },
    name: 'KeepZipSelection',
    source: SOURCE,
    summary: 'Looks at the objects of an archive, counts them, and keeps the selection for an hour, for links to it.',
    deadlineMs: DEADLINE_MS,
    on: { method: 'POST', resource: 'bucket', subresource: 'x-zip-selection' },
    body: selectionBody,
    result: z.object({
      SelectionId: z.string().describe('For `GET /{Bucket}?x-zip=&selection=`, by the same key pair or session.'),
      Expires: z.string().describe('RFC 3339.'),
      Objects: z.int(),
      Bytes: z.int().describe('Of all objects together.'),
    }),
    async answer({ request, body }, context) {
      const { bucket } = request
      const selection = selectionOf(body)
      const { objects, bytes } = await check(context, bucket, selection, request.signal)
      const { id, expires } = await kept.keep(callerOf(context), bucket, selection)
      return { SelectionId: id, Expires: new Date(expires).toISOString(), Objects: objects, Bytes: bytes }
    },
  })
}

/** Looks at the selection, and answers with its archive. */
async function answer(
  { host: { perform, log }, room }: Making,
  request: S3Request<'bucket'>,
  context: Context,
  selection: Selection,
): Promise<Reply> {
  const { bucket, remoteAddress, secure, host: name } = request
  const { paths } = await check(context, bucket, selection, request.signal)
  const { accessKeyId, session } = callerOf(context).identity
  const owner = { accessKeyId, session, client: { remoteAddress, secure, host: name } }
  const download = new ArchiveDownload({ bucket, selection, owner, perform, log, held: room.hold(paths) }, context)
  return { status: 200, headers: headersOf(selection, bucket), body: { download } }
}

function callerOf({ caller }: Context): Caller {
  if (!caller) throw new S3Error('AccessDenied')
  return caller
}
