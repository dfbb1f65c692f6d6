import type { Test } from 'tap'
import type { PlatformOptions } from '../../../../services/platform/platform.js'
import { type Answer, type Scene, startScene } from '../platform-client.js'

export const URL_OF_CAR = 'http://127.0.0.1:9000/car/1.car'
export const MD5 = '5d41402abc4b2a76b9719d911017c592'
export const DEAL_CID = 'bafyreiaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa'

/** Terms of a private task for the provider t01000. */
export const PRIVATE = { task_name: 'nightly', is_public: '0', miner_id: 't01000', type: 'regular' }
/** Terms of a public task whose best bid wins. */
export const PUBLIC = { task_name: 'holidays', is_public: '1', bid_mode: '1', type: 'regular' }

export const CSV = `uuid,miner_id,deal_cid,file_source_url,md5,start_epoch,file_size\n,,${DEAL_CID},${URL_OF_CAR},${MD5},12,2000\n`

/** A CSV of so many deals without CIDs. */
export function csvOf(deals: number): string {
  const rows = Array.from({ length: deals }, (_, n) => `${URL_OF_CAR}?${n},${MD5},2000\n`)
  return `file_source_url,md5,file_size\n${rows.join('')}`
}

/** The form of POST /tasks. */
export function formOf(terms: Readonly<Record<string, string>>, csv: string | null = CSV): FormData {
  const form = new FormData()
  for (const [name, value] of Object.entries(terms)) form.set(name, value)
  if (csv !== null) form.set('file', new Blob([csv], { type: 'text/csv' }), 'deals.csv')
  return form
}

/** A platform with two users: one has the providers, the other posts tasks. No program of a provider runs. */
export interface TaskScene {
  readonly scene: Scene
  /** JWT of the user that has the providers. */
  readonly provider: string
  /** JWT of a user without providers. */
  readonly client: string
  /** Posts a task of the client; throws when it is refused. Returns its UUID. */
  post(terms?: Readonly<Record<string, string>>, csv?: string | null): Promise<string>
  get(path: string, token?: string): Promise<Answer>
  put(path: string, form: Readonly<Record<string, string>>, token?: string): Promise<Answer>
  /** Details of a task, as the client sees them. */
  // biome-ignore lint/suspicious/noExplicitAny: a JSON answer that the test looks into
  task(uuid: string): Promise<any>
}

/** CARs may come from servers of the test. */
export async function startTasks(t: Test, options: Partial<PlatformOptions> = {}): Promise<TaskScene> {
  const cars = { networks: ['127.0.0.1'], ...options.cars }
  const scene = await startScene(t, { daemon: 'external', ...options, cars })
  const client = await scene.addUser('client@example.com')
  return tasksOf(scene, await scene.signIn(), client)
}

export function tasksOf(scene: Scene, provider: string, client: string): TaskScene {
  const get = (path: string, token?: string) => scene.call('GET', path, { token })
  return {
    scene,
    provider,
    client,
    get,
    put: (path, form, token = provider) => scene.call('PUT', path, { body: new URLSearchParams(form), token }),
    async post(terms = PRIVATE, csv = CSV) {
      const { status, json } = await scene.call('POST', '/tasks', { body: formOf(terms, csv), token: client })
      if (status !== 200) throw new Error(`POST /tasks was answered with ${status}: ${json.message}`)
      return json.data.uuid
    },
    async task(uuid) {
      const { status, json } = await get(`/tasks/${uuid}`, client)
      if (status !== 200) throw new Error(`GET /tasks/${uuid} was answered with ${status}: ${json.message}`)
      return json.data
    },
  }
}
