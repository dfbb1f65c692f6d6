import { parentPort } from 'node:worker_threads'
import { collectWhenIdle } from '../common/idle-heap.js'
import type { ServicesLog } from './log.js'
import { type ServiceName, type Services, startServices } from './services.js'
import type { Answers, FromWorker, SentError, ToWorker } from './worker-messages.js'

/** Entry point of the thread that `startServicesInWorker` starts. */
const port = parentPort
if (port === null) throw new Error('This module runs in a worker thread only.')

const post = (message: FromWorker): void => port.postMessage(message)

const forward =
  (level: keyof ServicesLog) =>
  (fields: object, message: string): void =>
    post({ type: 'log', level, fields: cloneable(fields), message })

function cloneable(fields: object): Record<string, unknown> {
  return Object.fromEntries(
    Object.entries(fields).map(([name, value]) => [name, value instanceof Error ? sent(value) : value]),
  )
}

function sent({ name, message, stack, code }: NodeJS.ErrnoException): SentError {
  return { name, message, stack, ...(typeof code === 'string' && { code }) }
}

const log: ServicesLog = { info: forward('info'), warn: forward('warn'), error: forward('error') }

/** Answers what the services are asked for, and tells that they have started. */
function serve({ gateway, platform, payment, stop, metrics }: Services): void {
  const answers: { readonly [what in keyof Answers]: () => Promise<Answers[what]> } = {
    credentials: () => gateway.credentials(),
    'first user': async () => platform?.makeFirstUser(),
    metrics,
  }
  port?.on('message', async (message: ToWorker) => {
    if (message.type === 'ask') {
      const { what, id } = message
      await answers[what]().then(
        (value) => post({ type: 'answer', id, value }),
        (error) => post({ type: 'refusal', id, message: (error as Error).message }),
      )
    } else if (message.type === 'attach') gateway.attach(message.port)
    else if (message.type === 'stop') {
      await stop()
      port.close()
    }
  })
  const { quirks, madeKeys } = gateway
  post({
    type: 'started',
    gateway: { ...listeningOf(gateway), quirks, madeKeys },
    platform: platform && listeningOf(platform),
    payment: payment && listeningOf(payment),
  })
}

/** What can be sent of a running service. */
function listeningOf({ url, port, ownUrl }: NonNullable<Services['payment']>): NonNullable<Services['payment']> {
  return { url, port, ownUrl }
}

/** Takes the first message: to start the services, or to end because they are not needed after all. */
async function begin(message: ToWorker): Promise<void> {
  if (message.type !== 'start') return port?.close()
  try {
    serve(await startServices({ ...message.options, log }))
    port?.off('message', begin)
    collectWhenIdle()
  } catch (error) {
    const { message, code, service } = error as NodeJS.ErrnoException & { readonly service?: ServiceName }
    post({ type: 'failed', message, code, service })
    port?.close()
  }
}

port.on('message', begin)
