/**
 * All error codes of this server, with their HTTP status and default text. Codes and statuses:
 * https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html#ErrorCodeList; those about deals, tasks,
 * providers, wallets, jobs and upstream services are specific to this server. Upstream* codes with a 5xx status are for
 * calls that only read: clients repeat requests that get them.
 */
export interface CodeRow {
  status: number
  message: string
}

export const codes = {
  AccessControlListNotSupported: { status: 400, message: 'The bucket does not allow ACLs.' },
  AccessDenied: { status: 403, message: 'Access Denied' },
  AccessForbidden: { status: 403, message: 'Access forbidden' },
  AuthorizationHeaderMalformed: { status: 400, message: 'The authorization header that you provided is not valid.' },
  AuthorizationQueryParametersError: { status: 400, message: 'The authorization query parameters are not valid.' },
  BadDigest: {
    status: 400,
    message: 'The Content-MD5 or checksum value that you specified did not match what the server received.',
  },
  BadRequest: { status: 400, message: 'Bad Request' },
  BucketAlreadyExists: { status: 409, message: 'The requested bucket name is not available.' },
  BucketAlreadyOwnedByYou: {
    status: 409,
    message: 'The bucket that you tried to create already exists, and you own it.',
  },
  BucketEmpty: { status: 409, message: 'The bucket holds no object.' },
  BucketNotEmpty: {
    status: 409,
    message: 'The bucket that you tried to delete is not empty. Its versions and delete markers count, too.',
  },
  ConditionalRequestConflict: {
    status: 409,
    message: 'A conflicting operation occurred during the conditional request. Try again.',
  },
  DealPriceTooHigh: { status: 400, message: 'The price of the deal is far above what the provider asks.' },
  DealRejected: { status: 409, message: 'The deal was rejected.' },
  DealTermsInvalid: { status: 400, message: 'The terms of the deal are incomplete or contradict each other.' },
  DealTermsRequired: {
    status: 400,
    message:
      'No terms for a deal were found in the request, in the metadata of the object, or in the configuration of the bucket.',
  },
  DuplicateRequest: {
    status: 409,
    message:
      'The same request was made a moment ago. Repeat it with a client token, or with Force to have it done twice.',
  },
  EntityAlreadyExists: { status: 409, message: 'There is a key pair or account of this name already.' },
  EntityTooLarge: { status: 400, message: 'Your proposed upload exceeds the maximum allowed object size.' },
  EntityTooSmall: { status: 400, message: 'Your proposed upload is smaller than the minimum allowed object size.' },
  ExpiredToken: { status: 400, message: 'The provided token has expired.' },
  FeatureNotInVariant: { status: 501, message: 'The service behind this endpoint does not offer this.' },
  GlacierExpeditedRetrievalNotAvailable: {
    status: 503,
    message: 'Glacier expedited retrievals are currently not available. Try again later.',
  },
  IdempotencyParameterMismatch: { status: 409, message: 'The client token was used before with other parameters.' },
  IllegalLocationConstraintException: {
    status: 400,
    message: 'The specified location constraint does not fit this region.',
  },
  IllegalVersioningConfigurationException: {
    status: 400,
    message: 'The Versioning element must be specified',
  },
  IncompleteBody: {
    status: 400,
    message: 'You did not provide the number of bytes specified by the Content-Length HTTP header',
  },
  InternalError: { status: 500, message: 'An internal error occurred. Try again.' },
  InvalidAccessKeyId: { status: 403, message: 'The access key ID that you provided does not exist in our records.' },
  InvalidArgument: { status: 400, message: 'Invalid Argument' },
  InvalidBucketAclWithObjectOwnership: {
    status: 400,
    message: "Bucket cannot have ACLs set with ObjectOwnership's BucketOwnerEnforced setting",
  },
  InvalidBucketName: { status: 400, message: 'The specified bucket is not valid.' },
  InvalidBucketState: {
    status: 409,
    message: 'The request is not valid for the current state of the bucket.',
  },
  InvalidChunkSizeError: {
    status: 403,
    message: 'Only the last chunk is allowed to have a size less than 8192 bytes',
  },
  InvalidDigest: { status: 400, message: 'The Content-MD5 or checksum value that you specified is not valid.' },
  InvalidLocationConstraint: { status: 400, message: 'The specified location-constraint is not valid' },
  InvalidObjectState: { status: 403, message: 'The operation is not valid for the current state of the object.' },
  InvalidPart: {
    status: 400,
    message:
      "One or more of the specified parts could not be found.  The part may not have been uploaded, or the specified entity tag may not match the part's entity tag.",
  },
  InvalidPartNumber: { status: 416, message: 'The requested partnumber is not satisfiable' },
  InvalidPartOrder: {
    status: 400,
    message: 'The list of parts was not in ascending order. Parts must be ordered by part number.',
  },
  InvalidPolicyDocument: {
    status: 400,
    message: 'The content of the form does not meet the conditions of a policy document.',
  },
  InvalidRedirectLocation: {
    status: 400,
    message: "The website redirect location must have a prefix of 'http://' or 'https://' or '/'.",
  },
  InvalidRange: { status: 416, message: 'The requested range is not satisfiable' },
  InvalidRequest: { status: 400, message: 'Invalid Request' },
  InvalidRetentionPeriod: { status: 400, message: 'The retention period specified is invalid' },
  InvalidSecurity: { status: 403, message: 'The provided security credentials are not valid.' },
  InvalidStorageClass: { status: 400, message: 'The storage class you specified is not valid.' },
  InvalidTag: { status: 400, message: 'The tag that you provided is not valid.' },
  InvalidTargetBucketForLogging: {
    status: 400,
    message: 'The target bucket for logging either does not exist, is not owned by you, or does not take the logs.',
  },
  InvalidTier: { status: 403, message: 'The retrieval tier is not available for the storage class of the object.' },
  InvalidToken: { status: 400, message: 'The provided token is malformed or otherwise not valid.' },
  InvalidURI: { status: 400, message: "The specified URI couldn't be parsed." },
  'KMS.NotFoundException': { status: 400, message: 'The key for the encryption does not exist.' },
  KeyTooLongError: { status: 400, message: 'Your key is too long.' },
  MalformedACLError: {
    status: 400,
    message: 'The ACL that you provided was not well formed or did not validate against our published schema.',
  },
  MalformedPolicy: {
    status: 400,
    message: 'Your policy contains a principal, action, resource or form that is not valid.',
  },
  MalformedPOSTRequest: {
    status: 400,
    message: 'The body of your POST request is not well-formed multipart/form-data.',
  },
  MalformedTrailerError: {
    status: 400,
    message: 'The request contained trailing data that was not well-formed or did not conform to our published schema.',
  },
  MalformedXML: {
    status: 400,
    message: 'The XML you provided was not well-formed or did not validate against our published schema',
  },
  MaxPostPreDataLengthExceededError: {
    status: 400,
    message: 'Your POST request fields preceding the upload file were too large.',
  },
  MaxMessageLengthExceeded: { status: 400, message: 'Your request was too large.' },
  MetadataTooLarge: { status: 400, message: 'Your metadata headers exceed the maximum allowed metadata size.' },
  MethodNotAllowed: { status: 405, message: 'The specified method is not allowed against this resource.' },
  MissingContentLength: { status: 411, message: 'You must provide the Content-Length HTTP header.' },
  MissingRequestBodyError: { status: 400, message: 'Request body is empty.' },
  MissingSecurityHeader: { status: 400, message: 'Your request is missing a required header.' },
  NoSuchBucket: { status: 404, message: 'The specified bucket does not exist.' },
  NoSuchBucketPolicy: { status: 404, message: 'The specified bucket does not have a bucket policy.' },
  NoSuchCORSConfiguration: { status: 404, message: 'The CORS configuration does not exist' },
  NoSuchConfiguration: { status: 404, message: 'The specified configuration does not exist.' },
  NoSuchDeal: { status: 404, message: 'The specified deal does not exist.' },
  NoSuchEntity: { status: 404, message: 'The specified key pair or account does not exist.' },
  NoSuchJob: { status: 404, message: 'The specified job does not exist.' },
  NoSuchKey: { status: 404, message: 'The specified key does not exist.' },
  NoSuchObjectLockConfiguration: {
    status: 404,
    message: 'The specified object does not have a ObjectLock configuration',
  },
  NoSuchProvider: { status: 404, message: 'The specified storage provider does not exist.' },
  OwnershipControlsNotFoundError: { status: 404, message: 'The bucket ownership controls were not found' },
  NoSuchPublicAccessBlockConfiguration: {
    status: 404,
    message: 'The public access block configuration was not found',
  },
  NoSuchLifecycleConfiguration: { status: 404, message: 'The lifecycle configuration does not exist' },
  NoSuchTagSet: { status: 404, message: 'The TagSet does not exist' },
  NoSuchTask: { status: 404, message: 'The specified task does not exist.' },
  NoSuchUpload: {
    status: 404,
    message:
      'The specified multipart upload does not exist. The upload ID might be invalid, or the multipart upload might have been aborted or completed.',
  },
  NoSuchVersion: {
    status: 404,
    message: 'The version ID specified in the request does not match an existing version.',
  },
  NoSuchWebsiteConfiguration: {
    status: 404,
    message: 'The specified bucket does not have a website configuration',
  },
  NotImplemented: {
    status: 501,
    message: 'A header or parameter that you provided implies functionality that is not implemented.',
  },
  ObjectAlreadyInActiveTierError: { status: 403, message: 'This object is not archived and is readable as it is.' },
  ObjectLockConfigurationNotFoundError: {
    status: 404,
    message: 'Object Lock configuration does not exist for this bucket',
  },
  ObjectNotEncrypted: {
    status: 409,
    message: 'The object is not encrypted, and its bucket gives encrypted objects alone to public networks.',
  },
  ObjectNotInActiveTierError: {
    status: 403,
    message: 'The source object of the COPY operation is not in the active tier.',
  },
  OperationAborted: {
    status: 409,
    message: 'A conflicting conditional operation is currently in progress against this resource. Try again.',
  },
  PlatformIdentityRequired: { status: 403, message: 'This access key has no account of the task platform.' },
  PluginUnavailable: {
    status: 503,
    message: 'The plugin that answers this request is unavailable at the moment. Try again later.',
  },
  PreconditionFailed: { status: 412, message: 'At least one of the pre-conditions you specified did not hold' },
  ProviderRoleRequired: { status: 403, message: 'The account of the task platform is not that of a storage provider.' },
  /** As Ceph's gateway answers it (src/rgw/rgw_common.cc); AWS has no quotas. */
  QuotaExceeded: {
    status: 403,
    message: 'The quota of the account is used up: remove objects, or ask the operator for a larger one.',
  },
  ReplicationConfigurationNotFoundError: { status: 404, message: 'The replication configuration was not found' },
  RequestHeaderSectionTooLarge: {
    status: 400,
    message: 'The request header section exceeds the maximum allowed size.',
  },
  RequestTimeout: {
    status: 400,
    message: 'Your socket connection to the server was not read from or written to within the timeout period.',
  },
  RequestTimeTooSkewed: {
    status: 403,
    message: "The difference between the request time and the server's time is too large.",
  },
  RestoreAlreadyInProgress: { status: 409, message: 'Object restore is already in progress.' },
  InvalidEncryptionAlgorithmError: {
    status: 400,
    message: 'The encryption request that you specified is not valid. The valid value is AES256.',
  },
  ServerSideEncryptionConfigurationNotFoundError: {
    status: 404,
    message: 'The server side encryption configuration was not found',
  },
  ServiceUnavailable: { status: 503, message: 'Service is unable to handle request. Try again.' },
  SignatureDoesNotMatch: {
    status: 403,
    message:
      'The request signature that the server calculated does not match the signature that you provided. Check your secret access key and signing method.',
  },
  SlowDown: { status: 503, message: 'Please reduce your request rate.' },
  SpendCapReached: { status: 409, message: 'The deal would cost more than may still be spent today.' },
  TooManyConfigurations: {
    status: 400,
    message: 'You are attempting to create a new configuration but have already reached the 1,000-configuration limit.',
  },
  UnsupportedSignature: {
    status: 400,
    message: 'The provided request is signed with an unsupported signature version.',
  },
  UpstreamAuthFailed: { status: 403, message: 'The service behind this endpoint refused the log-in.' },
  UpstreamBadResponse: {
    status: 502,
    message: 'The service behind this endpoint gave an answer that cannot be understood.',
  },
  UpstreamTimeout: { status: 504, message: 'The service behind this endpoint did not answer in time. Try again.' },
  UpstreamUnavailable: { status: 503, message: 'The service behind this endpoint cannot be reached. Try again later.' },
  WalletNotLinked: { status: 403, message: 'This access key has no wallet linked to it.' },
  XAmzContentSHA256Mismatch: {
    status: 400,
    message: "The provided 'x-amz-content-sha256' header does not match what was computed.",
  },
} as const satisfies Record<string, CodeRow>

export type S3Code = keyof typeof codes

export function isCode(code: string): code is S3Code {
  return Object.hasOwn(codes, code)
}
