"""Ready-made activities: XSL transformation, templates, mail, polling a database, an audit trail, outgoing events.

Each works on any context that offers the fields it is told to read and write, and is wired like one of one's own.
"""

from __future__ import annotations

from iocflow.activities.audit import AuditRow, AuditTable, WriteAudit
from iocflow.activities.database import Connection, ConnectionFactory, Database, DatabaseSource
from iocflow.activities.errors import (
    ContextFieldError,
    DatabaseBusyError,
    DatabaseError,
    DeliveryError,
    EventDataError,
    HeaderError,
    LetterError,
    LibraryMissingError,
    MailError,
    MailTimeoutError,
    SmtpConnectionError,
    SmtpLoginError,
    SmtpTemporaryError,
    SmtpTlsError,
    StylesheetError,
    TemplateError,
    TransformError,
)
from iocflow.activities.letter import Delivery, DeliveryOutcome, Draft, Letter, Recipient
from iocflow.activities.mail import SendMail
from iocflow.activities.poll import PollQuery
from iocflow.activities.publish import PublishEvent
from iocflow.activities.smtp import Remaining, Sender, SmtpSender
from iocflow.activities.template import RenderTemplate
from iocflow.activities.xslt import ApplyXslt

__all__ = [
    "ApplyXslt",
    "AuditRow",
    "AuditTable",
    "Connection",
    "ConnectionFactory",
    "ContextFieldError",
    "Database",
    "DatabaseBusyError",
    "DatabaseError",
    "DatabaseSource",
    "Delivery",
    "DeliveryError",
    "DeliveryOutcome",
    "Draft",
    "EventDataError",
    "HeaderError",
    "Letter",
    "LetterError",
    "LibraryMissingError",
    "MailError",
    "MailTimeoutError",
    "PollQuery",
    "PublishEvent",
    "Recipient",
    "Remaining",
    "RenderTemplate",
    "SendMail",
    "Sender",
    "SmtpConnectionError",
    "SmtpLoginError",
    "SmtpSender",
    "SmtpTemporaryError",
    "SmtpTlsError",
    "StylesheetError",
    "TemplateError",
    "TransformError",
    "WriteAudit",
]
