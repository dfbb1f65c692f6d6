import type { KeyPair } from '../gateway/accounts/key-pair.js'
import type { QuirkName } from '../gateway/quirks.js'
import type { ServicesLog } from '../log.js'

export type ToWorker = { readonly type: 'credentials'; readonly id: number } | { readonly type: 'stop' }

export type FromWorker =
  | {
      readonly type: 'started'
      readonly url: string
      readonly port: number
      readonly quirks: readonly QuirkName[]
      readonly madeKeys: boolean
    }
  | { readonly type: 'failed'; readonly message: string; readonly code: string | undefined }
  | { readonly type: 'credentials'; readonly id: number; readonly credentials: KeyPair }
  | {
      readonly type: 'log'
      readonly level: keyof ServicesLog
      readonly fields: Record<string, unknown>
      readonly message: string
    }
