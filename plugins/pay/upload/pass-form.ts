import { type Context, openForm, type S3Request, type z } from 'dealgate'
import { acting } from '../login/acting.js'
import type { PayParts } from '../parts.js'
import type { FileInput, fileQuery } from './file-input.js'
import { termsOfForm } from './file-terms.js'
import { actorOfJob } from './outcome.js'
import { type HeldFile, passFile } from './pass-file.js'

interface HeldForm extends HeldFile {
  readonly query: z.output<typeof fileQuery>
}

/** Passes the file of a form on to the service, as `passFile` does, with the terms that the form states. */
export async function passForm(
  parts: PayParts,
  request: Pick<S3Request, 'body' | 'headers' | 'signal'>,
  { jobId, input, query }: HeldForm,
  context: Context,
): Promise<FileInput> {
  const form = await openForm(request)
  try {
    const { wallet: named, ...terms } = termsOfForm(query, form)
    const actor = await actorOfJob(parts, { input, context })
    const wallet = await acting(parts, actor, { named, needsAddress: true }, async ({ address }) => address)
    const content = {
      size: undefined,
      async send(sink: (chunk: Buffer) => Promise<void>) {
        for await (const chunk of form.content()) await sink(chunk)
      },
    }
    const read: FileInput = { ...input, ...terms, ...(wallet !== undefined && { wallet }) }
    return await passFile(parts, { content, signal: request.signal }, { jobId, input: read }, context)
  } finally {
    form.close()
  }
}
