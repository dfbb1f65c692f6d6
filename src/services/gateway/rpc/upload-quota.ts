import { z } from 'zod'
import { defineSignedMethod } from './method.js'

/**
 * Returns how many multipart uploads the account may have under way; null for no bound. Multipart uploads exist in
 * front of the gateway alone: its clients count them, and enforce the bound.
 */
export const uploadQuota = defineSignedMethod({
  name: 'web.UploadQuota',
  feature: 'upload-quota',
  params: z.object({}),
  run: (_, { context, account: { id } }) => ({ uploads: context.quotas.of(id)?.uploads ?? null }),
})
