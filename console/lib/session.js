// Who is signed in. The key pair is used for one request, which exchanges it for a session; then it is forgotten.
import { ApiError, sendJson, sendXml } from './api.js'
import { effect, signal } from './html.js'
import { Signer } from './signer.js'

const KEPT = 'dealgate-session'
/** The time of the last input, beside the session that is kept. */
const LAST_INPUT = 'dealgate-last-input'
/** What the sign-in at an issuer needs on the return from there. */
export const ISSUER_KEPT = 'dealgate-oidc'
/** Without any input for so long, the console is locked, ms. */
const IDLE_MS = 15 * 60_000
const SESSION_SECONDS = 12 * 3600
const IDLE = 'The console was not used for 15 minutes. Sign in again.'
const ENDED = 'The session has ended. Sign in again.'

/** How the names of calls begin that change nothing. */
const READING = ['Get', 'List', 'Describe', 'Quote']

/** The client of the session, with { expires, readOnly, pairId?, user? } beside endpoint and signer; null without a session. */
export const session = signal(null)

/** Why the session has ended; '' at the start. */
export const signedOutBecause = signal('')

/** Work that a lock would interrupt, such as uploads: while it is above 0, the console stays open. */
export const busy = signal(0)

let config

/** Reads where the endpoint is. Throws Error, also for an answer that a proxy in between has given. */
export async function readConfig() {
  const answer = await fetch('config.json', { credentials: 'omit' })
  if (!answer.ok) throw new Error(`config.json has the status ${answer.status}`)
  config = await answer.json()
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
  if (stay) sessionStorage.setItem(KEPT, JSON.stringify(got))
  await open(got)
}

/** Signs in a user of the task platform, whose password is exchanged for a session at once. Throws ApiError. */
export async function signInUser({ email, password }, wishes) {
  const login = { path: '/-/task/v1/sign-in', json: { Email: email, Password: password } }
  const { AuthToken: token } = await sendJson({ endpoint: endpointOf(config) }, login)
  await signInByToken(token, { role: 'platform-user', user: email }, wishes)
}

/**
 * Exchanges a token for a session, and forgets it. Throws ApiError.
 * @param as { role, user }: the name of a role that the token gives, and that of the user, which is shown
 */
export async function signInByToken(token, { role, user }, { readOnly = false, stay = false } = {}) {
  const client = { endpoint: endpointOf(config) }
  let got = await assumed(client, token, role)
  if (readOnly) {
    const signer = await Signer.of({ ...got, region: config.region })
    got = { ...(await assumed(client, token, role, await readOnlyPolicy({ ...client, signer }))), readOnly }
  }
  got.user = user
  if (stay) sessionStorage.setItem(KEPT, JSON.stringify(got))
  await open(got)
}

/** The user of a token of the issuer, and the names of the roles that it gives: { user, roles }. Throws ApiError. */
export async function rolesOf(token) {
  const answer = await sts(
    { endpoint: endpointOf(config) },
    { Action: 'ListWebIdentityRoles', WebIdentityToken: token },
  )
  const result = answer.child('ListWebIdentityRolesResult')
  const roles = result.child('Roles').all('member')
  return { user: result.get('SubjectFromWebIdentityToken'), roles: roles.map((role) => role.get('RoleName')) }
}

/** Uses the session that this tab has kept, if there is one. */
export async function resume() {
  try {
    const kept = JSON.parse(sessionStorage.getItem(KEPT) ?? 'null')
    if (kept === null) return
    if (kept.expires <= Date.now()) signOut(ENDED)
    else if (isIdle(Number(sessionStorage.getItem(LAST_INPUT)))) signOut(IDLE)
    else await open(kept)
  } catch {
    signOut()
  }
}

async function open({ expires, readOnly, pairId, user, ...credentials }) {
  // One that was left off.
  sessionStorage.removeItem(ISSUER_KEPT)
  const signer = await Signer.of({ ...credentials, region: config.region })
  session.value = { endpoint: endpointOf(config), signer, expires, readOnly, pairId, user }
  signedOutBecause.value = ''
}

export function signOut(because = '') {
  sessionStorage.removeItem(KEPT)
  sessionStorage.removeItem(LAST_INPUT)
  signedOutBecause.value = because
  session.value = null
}

/** Signs out if the server has refused a request because the session has expired or was revoked. */
export function endSessionAfter({ code }) {
  if (session.peek() !== null && ['ExpiredToken', 'InvalidToken'].includes(code)) signOut(ENDED)
}

/** What a session that can change nothing may do, of S3 and of each plugin that runs: docs/sts.md. */
async function readOnlyPolicy(client) {
  const request = { path: '/-/plugins/v1', query: { 'max-items': 1000 } }
  const { Plugins } = await sendJson(client, request).catch((error) => {
    // A key pair that may not list the plugins, or of a server that runs none, reads by S3 alone.
    if (['AccessDenied', 'NoSuchKey'].includes(error.code)) return { Plugins: [] }
    throw error
  })
  // A policy must not name an action that there is not.
  const actions = Plugins.flatMap(({ Name, Actions }) =>
    READING.map((verb) => `${Name}:${verb}`).flatMap((reading) =>
      Actions.some((action) => action.startsWith(reading)) ? `${reading}*` : [],
    ),
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
  return { ...credentialsOf(answer, 'GetSessionTokenResult'), readOnly, pairId: client.signer.accessKeyId }
}

async function assumed(client, token, role, policy) {
  const answer = await sts(client, {
    Action: 'AssumeRoleWithWebIdentity',
    RoleArn: `arn:aws:iam::000000000000:role/${role}`,
    RoleSessionName: 'console',
    WebIdentityToken: token,
    DurationSeconds: SESSION_SECONDS,
    ...(policy && { Policy: JSON.stringify(policy) }),
  })
  return { ...credentialsOf(answer, 'AssumeRoleWithWebIdentityResult'), readOnly: false }
}

function credentialsOf(answer, result) {
  const credentials = answer.child(result).child('Credentials')
  return {
    accessKeyId: credentials.get('AccessKeyId'),
    secretAccessKey: credentials.get('SecretAccessKey'),
    sessionToken: credentials.get('SessionToken'),
    expires: Date.parse(credentials.get('Expiration')),
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

/** Sets the time of the last input, and keeps it where the session is kept: a tab that comes back is as old as that. */
function used() {
  lastInput = Date.now()
  if (sessionStorage.getItem(KEPT) !== null) sessionStorage.setItem(LAST_INPUT, String(lastInput))
}

function isIdle(since) {
  return Date.now() - since > IDLE_MS
}

/** Locks a console that is not in use; a machine that slept has run no timer before its first input. */
function check() {
  if (Date.now() > session.peek().expires) signOut(ENDED)
  else if (busy.peek() > 0) used()
  else if (isIdle(lastInput)) signOut(IDLE)
}

for (const name of ['pointerdown', 'keydown', 'wheel', 'touchstart']) {
  const onInput = () => {
    if (session.peek() !== null) check()
    if (session.peek() !== null) used()
  }
  addEventListener(name, onInput, { capture: true, passive: true })
}

effect(() => {
  if (session.value === null) return undefined
  used()
  const timer = setInterval(check, 5000)
  return () => clearInterval(timer)
})
