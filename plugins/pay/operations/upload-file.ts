import { defineCall, isForm, S3Error } from 'dealgate'
import { acting, actorOf } from '../login/acting.js'
import type { PayParts } from '../parts.js'
import { type FileInput, fileQuery, UPLOAD_FILE } from '../upload/file-input.js'
import { termsOfQuery } from '../upload/file-terms.js'
import { BEARER_PURPOSE, madeUpload } from '../upload/input.js'
import { type FileContent, passFile } from '../upload/pass-file.js'
import { passForm } from '../upload/pass-form.js'
import { SOURCE } from './sources.js'

/** Of a form that is still to be read. */
const UNREAD = { name: '', days: 0, fileType: '0' } as const

export function uploadToIpfs(parts: PayParts) {
  return defineCall({
    name: 'UploadToIpfs',
    source: SOURCE,
    summary:
      'Uploads the body of the request, or the file of a form, to the content-addressed network, without an object.',
    access: 'signed',
    on: { method: 'POST', resource: 'service', path: '/-/pay/v1/uploads' },
    query: fileQuery,
    result: madeUpload,
    root: 'PayUploadResult',
    job: UPLOAD_FILE,
    spends: true,
    async order({ request, query }, context) {
      const { length: size } = request.body
      if (size === undefined) throw new S3Error('MissingContentLength')
      const actor = actorOf(context, request)
      const sealed =
        actor.bearer === undefined ? {} : { bearer: await parts.host.sealer.seal(actor.bearer, BEARER_PURPOSE) }
      const resource = '/-/pay/v1/uploads'
      // What a form says is read with its file.
      if (isForm(request)) return { resource, input: { ...UNREAD, size, ...sealed } }
      const { wallet: named, ...terms } = termsOfQuery(query)
      const wallet = await acting(parts, actor, { named, needsAddress: true }, async ({ address }) => address)
      return { resource, input: { ...terms, size, ...(wallet !== undefined && { wallet }), ...sealed } }
    },
    pass: ({ request, query }, { id, input }, context) => {
      const held = { jobId: id, input: input as FileInput }
      if (isForm(request)) return passForm(parts, request, { ...held, query }, context)
      const content: FileContent = {
        size: held.input.size,
        send: async (sink) => void (await request.body.stream(sink)),
      }
      return passFile(parts, { content, signal: request.signal }, held, context)
    },
  })
}
