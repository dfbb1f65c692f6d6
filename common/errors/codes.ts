/**
 * All error codes of this server by their HTTP status, with their default text. Codes and statuses:
 * https://docs.aws.amazon.com/AmazonS3/latest/API/ErrorResponses.html#ErrorCodeList; those about deals, tasks,
 * providers, wallets, jobs and upstream services are specific to this server. Upstream* codes with a 5xx status are for
 * calls that only read: clients repeat requests that get them.
 */
export const codes = {
  ...withStatus(400, {
    AccessControlListNotSupported: 'The bucket does not allow ACLs.',
    AuthorizationHeaderMalformed: 'The authorization header that you provided is not valid.',
    AuthorizationQueryParametersError: 'The authorization query parameters are not valid.',
    BadDigest: 'The Content-MD5 or checksum value that you specified did not match what the server received.',
    BadRequest: 'Bad Request',
    DealPriceTooHigh: 'The price of the deal is far above what the provider asks.',
    DealTermsInvalid: 'The terms of the deal are incomplete or contradict each other.',
    DealTermsRequired:
      'No terms for a deal were found in the request, in the metadata of the object, or in the configuration of the bucket.',
    EntityTooLarge: 'Your proposed upload exceeds the maximum allowed object size.',
    EntityTooSmall: 'Your proposed upload is smaller than the minimum allowed object size.',
    ExpiredToken: 'The provided token has expired.',
    IllegalLocationConstraintException: 'The specified location constraint does not fit this region.',
    IllegalVersioningConfigurationException: 'The Versioning element must be specified',
    IncompleteBody: 'You did not provide the number of bytes specified by the Content-Length HTTP header',
    InvalidArgument: 'Invalid Argument',
    InvalidBucketAclWithObjectOwnership:
      "Bucket cannot have ACLs set with ObjectOwnership's BucketOwnerEnforced setting",
    InvalidBucketName: 'The specified bucket is not valid.',
    InvalidDigest: 'The Content-MD5 or checksum value that you specified is not valid.',
    InvalidLocationConstraint: 'The specified location-constraint is not valid',
    InvalidPart:
      "One or more of the specified parts could not be found.  The part may not have been uploaded, or the specified entity tag may not match the part's entity tag.",
    InvalidPartOrder: 'The list of parts was not in ascending order. Parts must be ordered by part number.',
    InvalidPolicyDocument: 'The content of the form does not meet the conditions of a policy document.',
    InvalidRedirectLocation: "The website redirect location must have a prefix of 'http://' or 'https://' or '/'.",
    InvalidRequest: 'Invalid Request',
    InvalidRetentionPeriod: 'The retention period specified is invalid',
    InvalidStorageClass: 'The storage class you specified is not valid.',
    InvalidTag: 'The tag that you provided is not valid.',
    InvalidTargetBucketForLogging:
      'The target bucket for logging either does not exist, is not owned by you, or does not take the logs.',
    InvalidToken: 'The provided token is malformed or otherwise not valid.',
    InvalidURI: "The specified URI couldn't be parsed.",
    'KMS.NotFoundException': 'The key for the encryption does not exist.',
    KeyTooLongError: 'Your key is too long.',
    MalformedACLError:
      'The ACL that you provided was not well formed or did not validate against our published schema.',
    MalformedPolicy: 'Your policy contains a principal, action, resource or form that is not valid.',
    MalformedPOSTRequest: 'The body of your POST request is not well-formed multipart/form-data.',
    MalformedTrailerError:
      'The request contained trailing data that was not well-formed or did not conform to our published schema.',
    MalformedXML: 'The XML you provided was not well-formed or did not validate against our published schema',
    MaxPostPreDataLengthExceededError: 'Your POST request fields preceding the upload file were too large.',
    MaxMessageLengthExceeded: 'Your request was too large.',
    MetadataTooLarge: 'Your metadata headers exceed the maximum allowed metadata size.',
    MissingRequestBodyError: 'Request body is empty.',
    MissingSecurityHeader: 'Your request is missing a required header.',
    RequestHeaderSectionTooLarge: 'The request header section exceeds the maximum allowed size.',
    RequestTimeout: 'Your socket connection to the server was not read from or written to within the timeout period.',
    InvalidEncryptionAlgorithmError:
      'The encryption request that you specified is not valid. The valid value is AES256.',
    TooManyConfigurations:
      'You are attempting to create a new configuration but have already reached the 1,000-configuration limit.',
    UnsupportedSignature: 'The provided request is signed with an unsupported signature version.',
    XAmzContentSHA256Mismatch: "The provided 'x-amz-content-sha256' header does not match what was computed.",
  }),
  ...withStatus(403, {
    AccessDenied: 'Access Denied',
    AccessForbidden: 'Access forbidden',
    InvalidAccessKeyId: 'The access key ID that you provided does not exist in our records.',
    InvalidChunkSizeError: 'Only the last chunk is allowed to have a size less than 8192 bytes',
    InvalidObjectState: 'The operation is not valid for the current state of the object.',
    InvalidSecurity: 'The provided security credentials are not valid.',
    InvalidTier: 'The retrieval tier is not available for the storage class of the object.',
    ObjectAlreadyInActiveTierError: 'This object is not archived and is readable as it is.',
    ObjectNotInActiveTierError: 'The source object of the COPY operation is not in the active tier.',
    PlatformIdentityRequired: 'This access key has no account of the task platform.',
    ProviderRoleRequired: 'The account of the task platform is not that of a storage provider.',
    // Ceph's gateway answers this (src/rgw/rgw_common.cc); AWS has no quotas.
    QuotaExceeded: 'The quota of the account is used up: remove objects, or ask the operator for a larger one.',
    RequestTimeTooSkewed: "The difference between the request time and the server's time is too large.",
    SignatureDoesNotMatch:
      'The request signature that the server calculated does not match the signature that you provided. Check your secret access key and signing method.',
    UpstreamAuthFailed: 'The service behind this endpoint refused the log-in.',
    WalletNotLinked: 'This access key has no wallet linked to it.',
  }),
  ...withStatus(404, {
    NoSuchBucket: 'The specified bucket does not exist.',
    NoSuchBucketPolicy: 'The specified bucket does not have a bucket policy.',
    NoSuchCORSConfiguration: 'The CORS configuration does not exist',
    NoSuchConfiguration: 'The specified configuration does not exist.',
    NoSuchDeal: 'The specified deal does not exist.',
    NoSuchEntity: 'The specified key pair or account does not exist.',
    NoSuchJob: 'The specified job does not exist.',
    NoSuchKey: 'The specified key does not exist.',
    NoSuchObjectLockConfiguration: 'The specified object does not have a ObjectLock configuration',
    NoSuchProvider: 'The specified storage provider does not exist.',
    OwnershipControlsNotFoundError: 'The bucket ownership controls were not found',
    NoSuchPublicAccessBlockConfiguration: 'The public access block configuration was not found',
    NoSuchLifecycleConfiguration: 'The lifecycle configuration does not exist',
    NoSuchTagSet: 'The TagSet does not exist',
    NoSuchTask: 'The specified task does not exist.',
    NoSuchUpload:
      'The specified multipart upload does not exist. The upload ID might be invalid, or the multipart upload might have been aborted or completed.',
    NoSuchVersion: 'The version ID specified in the request does not match an existing version.',
    NoSuchWebsiteConfiguration: 'The specified bucket does not have a website configuration',
    ObjectLockConfigurationNotFoundError: 'Object Lock configuration does not exist for this bucket',
    ReplicationConfigurationNotFoundError: 'The replication configuration was not found',
    ServerSideEncryptionConfigurationNotFoundError: 'The server side encryption configuration was not found',
  }),
  ...withStatus(405, {
    MethodNotAllowed: 'The specified method is not allowed against this resource.',
  }),
  ...withStatus(409, {
    BucketAlreadyExists: 'The requested bucket name is not available.',
    BucketAlreadyOwnedByYou: 'The bucket that you tried to create already exists, and you own it.',
    BucketEmpty: 'The bucket holds no object.',
    BucketNotEmpty: 'The bucket that you tried to delete is not empty. Its versions and delete markers count, too.',
    ConditionalRequestConflict: 'A conflicting operation occurred during the conditional request. Try again.',
    DealRejected: 'The deal was rejected.',
    DuplicateRequest:
      'The same request was made a moment ago. Repeat it with a client token, or with Force to have it done twice.',
    EntityAlreadyExists: 'There is a key pair or account of this name already.',
    IdempotencyParameterMismatch: 'The client token was used before with other parameters.',
    InvalidBucketState: 'The request is not valid for the current state of the bucket.',
    ObjectNotEncrypted: 'The object is not encrypted, and its bucket gives encrypted objects alone to public networks.',
    OperationAborted: 'A conflicting conditional operation is currently in progress against this resource. Try again.',
    RestoreAlreadyInProgress: 'Object restore is already in progress.',
    SpendCapReached: 'The deal would cost more than may still be spent today.',
  }),
  ...withStatus(411, {
    MissingContentLength: 'You must provide the Content-Length HTTP header.',
  }),
  ...withStatus(412, {
    PreconditionFailed: 'At least one of the pre-conditions you specified did not hold',
  }),
  ...withStatus(416, {
    InvalidPartNumber: 'The requested partnumber is not satisfiable',
    InvalidRange: 'The requested range is not satisfiable',
  }),
  ...withStatus(500, {
    InternalError: 'An internal error occurred. Try again.',
  }),
  ...withStatus(501, {
    FeatureNotInVariant: 'The service behind this endpoint does not offer this.',
    NotImplemented: 'A header or parameter that you provided implies functionality that is not implemented.',
  }),
  ...withStatus(502, {
    UpstreamBadResponse: 'The service behind this endpoint gave an answer that cannot be understood.',
  }),
  ...withStatus(503, {
    GlacierExpeditedRetrievalNotAvailable: 'Glacier expedited retrievals are currently not available. Try again later.',
    PluginUnavailable: 'The plugin that answers this request is unavailable at the moment. Try again later.',
    ServiceUnavailable: 'Service is unable to handle request. Try again.',
    SlowDown: 'Please reduce your request rate.',
    UpstreamUnavailable: 'The service behind this endpoint cannot be reached. Try again later.',
  }),
  ...withStatus(504, {
    UpstreamTimeout: 'The service behind this endpoint did not answer in time. Try again.',
  }),
}

export interface CodeRow {
  readonly status: number
  readonly message: string
}

function withStatus<Name extends string>(status: number, messages: Readonly<Record<Name, string>>) {
  const rows = Object.entries<string>(messages).map(([name, message]) => [name, { status, message }])
  return Object.fromEntries(rows) as Readonly<Record<Name, CodeRow>>
}

export type S3Code = keyof typeof codes

export function isCode(code: string): code is S3Code {
  return Object.hasOwn(codes, code)
}
