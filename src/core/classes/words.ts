// Words that mean the same in every library: `UNAUTHORIZED`, `UnauthorizedError` and `unauthorized_exception` are one
// word. Words of failures that pass may stand anywhere in a name; words of failures that do not pass must be the
// whole name, so that the user's own `OrderNotFoundError` is still retried.

import type { FailureClass } from "../job.ts";
import { table } from "./clue.ts";

const WHOLE = table({
  authentication: `unauthorized unauthorised unauthenticated forbidden accessdenied permissiondenied permission
    authentication authenticationfailed authenticationfailure authenticationrequired authorization authorizationfailed
    authorizationfailure authorizationerror autherror auth badcredentials invalidcredentials invalidcredential
    invalidtoken invalidjwt badjwt tokenexpired expiredtoken expiredcredentials sessionexpired sessionnotfound
    sessionmissing invalidauthtoken invalidauth invalidapikey invalidsignature signaturedoesnotmatch notauthorized
    notauthenticated notauthed loginfailed invalidlogin insufficientscope insufficientscopes insufficientpermissions
    insufficientprivilege invalidaccesskeyid missingcredentials nocredentials credentials credentialsnotfound
    credentialunavailable invalidpassword wrongpassword tokenrevoked authorizationviolation authenticationexpired
    authenticationtimeout restrictedresource notbefore jwtexpired jwtinvalid jwtclaimvalidationfailed
    jwssignatureverificationfailed jwsinvalid jwtclaiminvalid invalidclient invalidgrant unauthorizedclient
    accountdisabled accountlocked permissionviolation permissionsviolation userbanned invalidhmac invalidsession
    invalidoauth authsessionmissing authinvalidcredentials authinvalidjwt notallowed aggregateauthentication
    credentialsprovider tokenprovider emailnotconfirmed noauthorization refreshtokennotfound refreshtokenalreadyused
    idtokenexpired idtokenrevoked invalididtoken sessioncookieexpired mismatchedcredential thirdpartyauth
    invalidapnscredentials partialcredentials`,
  validation: `invalidargument invalidarguments invalidrequest invalidinput invalidparameter invalidparameters
    invalidparametervalue invalidvalue invalidformat invalidpayload invaliddata invalidurl invaliduri invalidheader
    badrequest serialization baduserinput validation validationfailed validatefailed schemavalidation
    unprocessableentity unprocessablecontent unprocessable missingparameter missingrequiredparameter missingargument
    missingrequiredargument invalidsubject invalidcharacter uri malformedrequest graphqlvalidationfailed
    graphqlparsefailed parsefailed operationresolutionfailure outofrange invalidphonenumber invalidemail
    invalidrecipient invalidregistrationtoken contextlengthexceeded missingschema invalidschema unicodedecode
    unicodeencode value struct constraintviolation dataexception notnullviolation checkviolation argument
    illegalargument illegalargumentexception badvalue typemismatch invalidtype payloadtoolarge requesttoolarge
    entitytoolarge messagetoolarge messagetoolong maxpayloadexceeded payloadsizelimitexceeded badsubject badreply
    badpayload badheader invalidname invaliddnsyntax graphqlparse`,
  permanent: `notfound doesnotexist nosuchkey nosuchbucket nosuchentity nosuchfile filenotfound objectnotfound
    resourcenotfound entitynotfound documentnotfound recordnotfound rownotfound usernotfound modelnotfound
    alreadyexists duplicate duplicatekey duplicateentry conflict emptyresult noresult gone unsupported notsupported
    unsupportedoperation operationnotsupported notimplemented unimplemented unsupportedmediatype methodnotallowed
    methodnotsupported notacceptable failedprecondition preconditionfailed lengthrequired paymentrequired
    preconditionrequired registrationtokennotregistered devicenotregistered unregistered uniqueviolation
    foreignkeyviolation uniqueconstraint foreignkeyconstraint integrity persistedquerynotsupported insufficientquota
    billinghardlimitreached billingnotactive quotaexhausted insufficientfunds carddeclined toomanyredirects
    configuration productnotsupported notcompatible dataloss datacorrupted cancelledbyuser emailexists phoneexists
    useralreadyexists uidalreadyexists emailalreadyexists importerror modulenotfound unrecoverable fatal nonretryable
    nonretriable dataclone operation security contentfilterfinishreason notfunc`,
});
/** In this order: a connect timeout is a timeout, and a quota that timed out is a quota. */
const PARTS: readonly (readonly [RegExp, FailureClass])[] = [
  [
    /ratelimit|ratelimited|throttl|toomanyrequests|toomanycalls|rateexceeded|quotaexceeded|quotalimit|slowdown|requestlimit|resourceexhausted|overquota|floodwait|enhanceyourcalm|limitreached|maxcostexceeded$/,
    "rate_limited",
  ],
  [/timeout|timedout|deadlineexceeded|timelimitexceeded|timeexpired|timeoutexpired/, "timeout"],
  [/outofmemory|nomemory|outofdisk|diskfull|nospace|insufficientstorage|storagefull/, "system"],
  [
    /connection(?:refused|reset|closed|lost|aborted|terminated|failed|failure|exception|draining|$)|connect$|connector$|network|socket|disconnect|hostunreach|unreachable|dns|nameresolution|nolivingconnections|brokenpipe|notconnected|offline|chunkedencoding|incompleteread|protocolerror$|proxy|noconnection|noresponders|nohostavailable|fetcherror$|apiconnection/,
    "network",
  ],
  [
    /abort|cancel|unavailable|overloaded|busy|deadlock|tryagain|temporar|internalerror|internalserver|servererror|internal$|concurrent|optimisticlock|serializationfailure|stale|interrupted|retryable|retriable|inprogress|lockconflict|locktimeout|locknotavailable/,
    "transient",
  ],
];

/** The class of a name or code by its words; undefined where they say nothing. */
export function classOfWord(text: string): FailureClass | undefined {
  const plain = text.slice(0, 64).toLowerCase();
  // The last part of `requests.exceptions.ReadTimeout`, `java.net.ConnectException`, `messaging/internal-error`.
  const last = plain.split(/[./:]/).findLast((part) => part !== "") ?? "";
  const whole = last.replace(/[^a-z0-9]/g, "");
  const word = whole.replace(/(?:error|exception|fault|errors)$/, "");
  const found = WHOLE.get(word) ?? WHOLE.get(whole);
  return found ?? PARTS.find(([part]) => part.test(word) || part.test(whole))?.[1];
}
