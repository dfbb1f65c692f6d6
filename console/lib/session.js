// Who is signed in. The key pair is used for one request, which exchanges it for a session; then it is forgotten.
import { ApiError, sendJson, sendXml } from './api.js'
import { effect, signal } from './html.js'
import { Signer } from './signer.js'

const KEPT = 'dealgate-session'
/** Without any input for so long, the console is locked, ms. */
export const IDLE_MS = 15 * 60_000
const SESSION_SECONDS = 12 * 3600

/** How the names of calls begin that change nothing. */
const READING = ['Get', 'List', 'Describe', 'Quote']

/** The client of the session, with { expires, readOnly } beside endpoint and signer; null if nobody is signed in. */
export const session = signal(null)

/** Why nobody is signed in any more; '' at the start. */
export const signedOutBecause = signal('')

/** Work that a lock would interrupt, such as uploads: while it is above 0, the console stays open. */
export const busy = signal(0)

let config

/** Reads where the endpoint is. Throws Error. */
export async function readConfig() {
  config = await (await fetch('config.json', { credentials: 'omit' })).json()
  return config
}

/** The address of the S3 endpoint: as configured, or at its port of the host that has served this page. */
export function endpointOf({ endpoint, scheme, port }) {
  if (endpoint) return new URL(endpoint).origin
  return new URL(`${scheme}//${location.hostname}${port && `:${port}`}`).origin
}

/**
 * Signs in. A pair with a session token is a session already, which `readOnly` cannot narrow. Throws ApiError.
 * @param pair { accessKeyId, secretAccessKey, sessionToken? }
 */
export async function signIn(pair, { readOnly = false, stay = false } = {}) {
  if (pair.sessionToken && readOnly) {
    throw new ApiError('InvalidRequest', 'Temporary credentials cannot be made read only: sign in without Read only.')
  }
  const { region } = config
  const client = { endpoint: endpointOf(config), signer: await Signer.of({ ...pair, region }) }
  const got = pair.sessionToken ? await checked(client, pair) : await exchanged(client, readOnly)
  await open(got)
  if (stay) sessionStorage.setItem(KEPT, JSON.stringify(got))
}

/** Uses the session that this tab has kept, if there is one. */
export async function resume() {
  try {
    const kept = JSON.parse(sessionStorage.getItem(KEPT) ?? 'null')
    if (kept && kept.expires > Date.now()) await open(kept)
  } catch {
    sessionStorage.removeItem(KEPT)
  }
}

async function open({ expires, readOnly, ...credentials }) {
  const signer = await Signer.of({ ...credentials, region: config.region })
  session.value = { endpoint: endpointOf(config), signer, expires, readOnly }
  signedOutBecause.value = ''
}

export function signOut(because = '') {
  sessionStorage.removeItem(KEPT)
  signedOutBecause.value = because
  session.value = null
}

/** What a session that can change nothing may do, of S3 and of each plugin that runs: docs/sts.md. */
async function readOnlyPolicy(client) {
  const request = { path: '/-/plugins/v1', query: { 'max-items': 1000 } }
  const { Plugins } = await sendJson(client, request).catch((error) => {
    // A key pair that may not list the plugins reads by S3 alone.
    if (error.code === 'AccessDenied') return { Plugins: [] }
    throw error
  })
  const actions = Plugins.flatMap(({ Name, Calls }) =>
    READING.filter((verb) => Calls.some((call) => call.startsWith(verb))).map((verb) => `${Name}:${verb}*`),
  )
  return {
    Version: '2012-10-17',
    Statement: [{ Effect: 'Allow', Action: ['s3:Get*', 's3:List*', ...actions], Resource: '*' }],
  }
}

async function exchanged(client, readOnly) {
  const answer = await sts(client, {
    Action: 'GetSessionToken',
    DurationSeconds: SESSION_SECONDS,
    ...(readOnly && { Policy: JSON.stringify(await readOnlyPolicy(client)) }),
  })
  const credentials = answer.child('GetSessionTokenResult').child('Credentials')
  return {
    accessKeyId: credentials.get('AccessKeyId'),
    secretAccessKey: credentials.get('SecretAccessKey'),
    sessionToken: credentials.get('SessionToken'),
    expires: Date.parse(credentials.get('Expiration')),
    readOnly,
  }
}

async function checked(client, pair) {
  await sts(client, { Action: 'GetCallerIdentity' })
  return { ...pair, expires: Date.now() + SESSION_SECONDS * 1000, readOnly: false }
}

function sts(client, parameters) {
  const body = String(new URLSearchParams({ ...parameters, Version: '2011-06-15' }))
  const headers = { 'content-type': 'application/x-www-form-urlencoded' }
  return sendXml(client, { method: 'POST', path: '/', headers, body, service: 'sts' })
}

let lastInput = Date.now()
for (const name of ['pointerdown', 'keydown', 'wheel', 'touchstart']) {
  addEventListener(name, () => (lastInput = Date.now()), { capture: true, passive: true })
}

effect(() => {
  if (session.value === null) return undefined
  lastInput = Date.now()
  const timer = setInterval(() => {
    const { expires } = session.value
    if (busy.value > 0) lastInput = Date.now()
    if (Date.now() > expires) signOut('The session has expired. Sign in again.')
    else if (Date.now() - lastInput > IDLE_MS) signOut('The console was not used for 15 minutes. Sign in again.')
  }, 5000)
  return () => clearInterval(timer)
})
