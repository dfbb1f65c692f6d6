import { list, oidcIssuer, oidcRole, text } from './kinds.js'
import { option } from './option.js'

const word = text('id', '1 to 256 characters without space', /^[\x21-\x7e]{1,256}$/)

/** How users of an OpenID Connect issuer get temporary credentials, and sign in at the console. */
export const oidcOptions = {
  oidcIssuer: option('Console', oidcIssuer, {
    help: 'OpenID Connect issuer, whose tokens become temporary credentials by AssumeRoleWithWebIdentity, and at which users of the console sign in: its name exactly as its tokens have it.',
  }),
  oidcClientId: option('Console', word, {
    help: 'Client id of the console at the issuer: a public client, with the authorization code flow, PKCE and the address of the console as redirect URI. Its tokens are accepted.',
  }),
  oidcAudience: option('Console', list(word), {
    default: Object.freeze([]),
    help: 'Further audience whose tokens of the issuer are accepted, such as that of a build server.',
  }),
  oidcRole: option('Console', list(oidcRole), {
    default: Object.freeze([]),
    help: 'Key pair of the credentials file whose rights a token with this claim gives: `READER:groups=staff`. A token that has none gives nothing. No token gives the rights of the owner.',
  }),
  oidcScope: option('Console', text('words', 'words with a space between', /^[\x21-\x7e]+(?: [\x21-\x7e]+)*$/), {
    default: 'openid',
    help: 'Scopes that the console asks the issuer for, openid among them: those that bring the claims of --oidc-role.',
  }),
}
