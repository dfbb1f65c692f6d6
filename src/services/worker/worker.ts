import { parentPort, workerData } from 'node:worker_threads'
import type { ServicesLog } from '../log.js'
import { type ServiceName, type Services, type ServicesOptions, startServices } from '../services.js'
import type { Answers, FromWorker, ToWorker } from './worker-messages.js'

/** Entry point of the thread that `startServicesInWorker` starts. */
const port = parentPort
if (port === null) throw new Error('This module runs in a worker thread only.')

const post = (message: FromWorker): void => port.postMessage(message)

const forward =
  (level: keyof ServicesLog) =>
  (fields: object, message: string): void =>
    post({ type: 'log', level, fields: cloneable(fields), message })

/** Structured cloning drops the own members of errors. */
function cloneable(fields: object): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [
      name,
      value instanceof Error ? { name: value.name, message: value.message, stack: value.stack } : value,
    ]),
  )
}

const log: ServicesLog = { info: forward('info'), warn: forward('warn'), error: forward('error') }

async function serve({ gateway, platform, payment, stop }: Services): Promise<void> {
  const answers: { readonly [what in keyof Answers]: () => Promise<Answers[what]> } = {
    credentials: () => gateway.credentials(),
    'first user': async () => platform?.makeFirstUser(),
  }
  port?.on('message', async (message: ToWorker) => {
    if (message.type === 'ask') {
      const { what, id } = message
      await answers[what]().then(
        (value) => post({ type: 'answer', id, value }),
        (error) => post({ type: 'refusal', id, message: (error as Error).message }),
      )
      return
    }
    await stop()
    port.close()
  })
  const { url, port: number, quirks, madeKeys } = gateway
  const shown = platform && { url: platform.url, port: platform.port }
  post({
    type: 'started',
    url,
    port: number,
    quirks,
    madeKeys,
    platform: shown,
    payment: payment && { url: payment.url, port: payment.port },
  })
}

try {
  await serve(await startServices({ ...(workerData as ServicesOptions), log }))
} catch (error) {
  const { message, code, service } = error as NodeJS.ErrnoException & { readonly service?: ServiceName }
  post({ type: 'failed', message, code, service })
  port.close()
}
