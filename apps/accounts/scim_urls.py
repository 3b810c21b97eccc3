from django.urls import path, re_path

from apps.accounts.views import scim

urlpatterns = [
    path(".search", scim.search),
    path("Users", scim.users),
    path("Users/.search", scim.search),
    path("Users/<str:number>", scim.user),
    path("ServiceProviderConfig", scim.service_provider_config),
    path("ResourceTypes", scim.resource_types),
    path("ResourceTypes/<str:name>", scim.resource_types),
    path("Schemas", scim.schemas),
    path("Schemas/<str:name>", scim.schemas),
    re_path("", scim.nothing),
]
