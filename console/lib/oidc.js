// The sign-in at an OpenID Connect issuer: authorization code with PKCE. What is needed on the return is in the
// sessionStorage of this tab until then: no secret of a client, and nothing that outlives the sign-in.
import { ISSUER_KEPT, rolesOf, signInByToken } from './session.js'

/** A sign-in that takes longer is begun again, ms. */
const WITHIN_MS = 15 * 60_000

/**
 * Leaves for the issuer, who sends the browser back to the address in the configuration. Throws Error.
 * @param oidc as in config.json: { issuer, clientId, scope, redirectUri }
 * @param wishes what the sign-in is for, as `signIn` takes it
 */
export async function leaveForIssuer(oidc, wishes) {
  const { issuer, clientId, scope, redirectUri } = oidc
  const { authorization_endpoint: there, token_endpoint: tokens, ...more } = await discovered(issuer)
  const [state, nonce, verifier] = [randomWord(), randomWord(), randomWord()]
  const kept = { issuer, tokens, state, nonce, verifier, wishes, hash: location.hash, begun: Date.now() }
  kept.namesItself = more.authorization_response_iss_parameter_supported === true
  sessionStorage.setItem(ISSUER_KEPT, JSON.stringify(kept))
  const url = new URL(there)
  const asked = { response_type: 'code', client_id: clientId, redirect_uri: redirectUri, scope, state, nonce }
  const proof = { code_challenge: base64url(await digest(verifier)), code_challenge_method: 'S256' }
  for (const [name, value] of Object.entries({ ...asked, ...proof })) url.searchParams.set(name, value)
  location.assign(url.href)
}

/**
 * Exchanges the code for a token of the user. Throws Error, with what the issuer says.
 * @param answer what the issuer has added to the address; @param kept what this tab has kept of the sign-in
 * @returns { token, wishes }
 */
async function tokenOf(answer, kept, { issuer, clientId, redirectUri }) {
  if (kept === null || Date.now() - kept.begun > WITHIN_MS)
    throw new Error('This tab has begun no sign-in, or too long ago: sign in again.')
  // Before all else: what another page has made up is not shown as a word of the issuer.
  if (!isSame(answer.get('state'), kept.state))
    throw new Error('The answer belongs to no sign-in of this tab (state): sign in again.')
  const named = answer.get('iss')
  if (kept.issuer !== issuer || (named !== null && named !== issuer) || (named === null && kept.namesItself))
    throw new Error('The answer came from another issuer than the one that was asked: sign in again.')
  if (answer.has('error')) throw new Error(saidBy(answer.get('error'), answer.get('error_description')))
  const form = {
    grant_type: 'authorization_code',
    code: answer.get('code'),
    redirect_uri: redirectUri,
    client_id: clientId,
    code_verifier: kept.verifier,
  }
  const { status, json } = await ask(kept.tokens, { method: 'POST', body: new URLSearchParams(form) })
  if (status !== 200) throw new Error(saidBy(json?.error ?? `status ${status}`, json?.error_description))
  const token = json?.id_token
  const claims = claimsOf(token)
  if (claims?.nonce !== kept.nonce) throw new Error('The token was not issued for this sign-in (nonce): sign in again.')
  if (claims.iss !== issuer || ![claims.aud].flat().includes(clientId))
    throw new Error('The token was issued by another issuer, or to another client.')
  return { token, wishes: kept.wishes }
}

/** What the issuer says of itself: https://openid.net/specs/openid-connect-discovery-1_0.html */
async function discovered(issuer) {
  const { status, json } = await ask(`${issuer.replace(/\/$/, '')}/.well-known/openid-configuration`)
  if (status !== 200 || typeof json !== 'object')
    throw new Error(`The issuer ${issuer} does not describe itself: it answers with status ${status}.`)
  if (json.issuer !== issuer) throw new Error(`The issuer calls itself ${json.issuer}, and not ${issuer}.`)
  const methods = json.code_challenge_methods_supported
  if (methods && !methods.includes('S256')) throw new Error('The issuer does not support PKCE with S256.')
  for (const name of ['authorization_endpoint', 'token_endpoint'])
    if (!URL.canParse(json[name]) || !/^https?:$/.test(new URL(json[name]).protocol))
      throw new Error(`The issuer names no ${name}.`)
  return json
}

async function ask(url, options = {}) {
  let response
  try {
    response = await fetch(url, {
      ...options,
      credentials: 'omit',
      cache: 'no-store',
      redirect: 'error',
      referrerPolicy: 'no-referrer',
    })
  } catch {
    throw new Error(
      `${new URL(url).origin} does not answer this page. It may be away, or may not know the address of the console, ${location.origin}, as one of the client: its requests need CORS.`,
    )
  }
  return { status: response.status, json: await response.json().catch(() => undefined) }
}

function saidBy(error, description) {
  return `The issuer refuses the sign-in: ${description ? `${description} (${error})` : error}`
}

/** What the token says, which the server verifies. */
function claimsOf(token) {
  try {
    const text = atob(token.split('.')[1].replace(/-/g, '+').replace(/_/g, '/'))
    return JSON.parse(new TextDecoder().decode(Uint8Array.from(text, (character) => character.charCodeAt(0))))
  } catch {
    return undefined
  }
}

function isSame(one, other) {
  return typeof one === 'string' && one.length > 0 && one === other
}

function randomWord() {
  return base64url(crypto.getRandomValues(new Uint8Array(32)))
}

async function digest(text) {
  return new Uint8Array(await crypto.subtle.digest('SHA-256', new TextEncoder().encode(text)))
}

function base64url(bytes) {
  return btoa(String.fromCharCode(...bytes))
    .replace(/\+/g, '-')
    .replace(/\//g, '_')
    .replace(/=+$/, '')
}

/**
 * Ends the sign-in that the issuer has answered. Throws Error.
 * @param answer what the issuer has added to the address to which it has sent the browser
 * @returns { roles, signIn(role) }: the names of the roles that the user may have, and what takes one
 */
export async function returnFromIssuer(answer, oidc) {
  const kept = JSON.parse(sessionStorage.getItem(ISSUER_KEPT) ?? 'null')
  sessionStorage.removeItem(ISSUER_KEPT)
  const { token, wishes } = await tokenOf(answer, kept, oidc)
  const { user, roles } = await rolesOf(token)
  if (roles.length === 0)
    throw new Error('The issuer knows you, but this server gives you no role. Ask its operator for one: --oidc-role.')
  const signIn = async (role) => {
    await signInByToken(token, { role, user: `${user} as ${role}` }, wishes)
    location.hash = kept.hash
  }
  return { roles, signIn }
}
