import type { MessagePort } from 'node:worker_threads'
import type { FamilySnapshot } from '../common/metrics.js'
import type { KeyPair } from './gateway/accounts/key-pair.js'
import type { ServicesLog } from './log.js'
import type { SignIn } from './platform/users.js'
import type { ServiceName, Services, ServicesOptions } from './services.js'

/** What the thread is asked for, and the type of its answer. */
export interface Answers {
  readonly credentials: KeyPair
  readonly 'first user': SignIn | undefined
  readonly metrics: readonly FamilySnapshot[]
}

export type ToWorker =
  | { readonly type: 'start'; readonly options: Omit<ServicesOptions, 'log'> }
  | { readonly type: 'ask'; readonly what: keyof Answers; readonly id: number }
  | { readonly type: 'attach'; readonly port: MessagePort }
  | { readonly type: 'stop' }

/** An error of a line of the log: structured cloning drops its class and its own members. */
export interface SentError {
  readonly name: string
  readonly message: string
  readonly stack: string | undefined
  readonly code?: string
}

export type FromWorker =
  | {
      readonly type: 'started'
      readonly gateway: Omit<Services['gateway'], 'credentials' | 'attach'>
      readonly platform: Omit<NonNullable<Services['platform']>, 'makeFirstUser'> | undefined
      readonly payment: Services['payment']
    }
  | {
      readonly type: 'failed'
      readonly message: string
      readonly code: string | undefined
      /** The service that could not start. */
      readonly service: ServiceName | undefined
    }
  | { readonly type: 'answer'; readonly id: number; readonly value: Answers[keyof Answers] }
  | { readonly type: 'refusal'; readonly id: number; readonly message: string }
  | {
      readonly type: 'log'
      readonly level: keyof ServicesLog
      readonly fields: Record<string, unknown>
      readonly message: string
    }
