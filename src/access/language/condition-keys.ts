/**
 * The condition keys that a request here can have, in lower case:
 * https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_condition-keys.html
 * https://docs.aws.amazon.com/service-authorization/latest/reference/list_amazons3.html#amazons3-policy-keys
 *
 * A key that is not here is refused: a Deny on a value that no request has would silently never apply.
 */
export const CONDITION_KEYS: readonly string[] = [
  'aws:currenttime',
  'aws:epochtime',
  'aws:principalaccount',
  'aws:principalarn',
  'aws:principaltype',
  'aws:referer',
  'aws:securetransport',
  'aws:sourceip',
  'aws:useragent',
  'aws:userid',
  'aws:username',
  's3:authtype',
  's3:delimiter',
  's3:max-keys',
  's3:object-lock-legal-hold',
  's3:object-lock-mode',
  's3:object-lock-remaining-retention-days',
  's3:object-lock-retain-until-date',
  's3:prefix',
  's3:requestobjecttagkeys',
  's3:resourceaccount',
  's3:signatureversion',
  's3:versionid',
  's3:x-amz-acl',
  's3:x-amz-content-sha256',
  's3:x-amz-copy-source',
  's3:x-amz-grant-full-control',
  's3:x-amz-grant-read',
  's3:x-amz-grant-read-acp',
  's3:x-amz-grant-write',
  's3:x-amz-grant-write-acp',
  's3:x-amz-metadata-directive',
  's3:x-amz-object-ownership',
  's3:x-amz-server-side-encryption',
  's3:x-amz-server-side-encryption-aws-kms-key-id',
  's3:x-amz-server-side-encryption-customer-algorithm',
  's3:x-amz-storage-class',
  's3:x-amz-website-redirect-location',
  // Followed by the name of a tag. Case does not matter there either, although it does in the tags themselves:
  // https://docs.aws.amazon.com/IAM/latest/UserGuide/reference_policies_elements_condition.html
  's3:existingobjecttag/',
  's3:requestobjecttag/',
]

/** Keys that a service alone has: the bucket for which it writes, and the account that owns this bucket. */
export const SERVICE_KEYS: readonly string[] = ['aws:sourceaccount', 'aws:sourcearn']

const MULTIVALUED = ['s3:requestobjecttagkeys']

const LISTINGS = ['s3:listbucket', 's3:listbucketversions', 's3:listbucketmultipartuploads']
const RETAINING = ['s3:putobject', 's3:putobjectretention', 's3:bypassgovernanceretention']

/** The keys that only some actions have, with these actions in lower case. */
const OF_ACTIONS: Readonly<Record<string, readonly string[]>> = {
  's3:prefix': LISTINGS,
  's3:delimiter': LISTINGS,
  's3:max-keys': LISTINGS,
  's3:object-lock-mode': RETAINING,
  's3:object-lock-retain-until-date': RETAINING,
  's3:object-lock-remaining-retention-days': RETAINING,
  's3:object-lock-legal-hold': ['s3:putobject', 's3:putobjectlegalhold'],
}

/** @param key in lower case */
export function isConditionKey(key: string): boolean {
  return [...CONDITION_KEYS, ...SERVICE_KEYS].some((known) =>
    known.endsWith('/') ? key.startsWith(known) && key.length > known.length : key === known,
  )
}

/** True if a request may have several values of the key. */
export function isMultivalued(key: string): boolean {
  return MULTIVALUED.includes(key)
}

/** The actions whose requests can have the key, in lower case; undefined for all. */
export function actionsWithKey(key: string): readonly string[] | undefined {
  return Object.hasOwn(OF_ACTIONS, key) ? OF_ACTIONS[key] : undefined
}
