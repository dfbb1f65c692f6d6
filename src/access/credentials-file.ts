import {
  type CredentialsFile,
  type CredentialsFileOptions,
  openCredentialsFile as open,
} from '../auth/identities/credentials-file.js'
import { identityPolicyProblem } from './documents.js'

/** See auth/identities/credentials-file.ts. Also refuses a file with a policy that cannot be read. */
export function openCredentialsFile(options: CredentialsFileOptions): CredentialsFile {
  return open({ policyProblem: identityPolicyProblem, ...options })
}
